import { unlessRejected } from '../../failure/unless-code.js'
import type { Dataset } from '../../model/dataset.js'
import type { ApiServer } from '../csi/api-server.js'
import { ClaimMissing, findDatasets, type VolumeMeans } from './find-datasets.js'
import { describeRefusedVolume } from './gated-pods.js'
import type { Placed, Placement } from './placement.js'
import { sumRequests } from './pod-needs.js'
import { formatQueuedTask } from './queued-lease.js'
import type { CheckObject, WorkloadObject } from './workload-object.js'

/** A workload keeps its quota for a download that takes at most this long, in ms; else others may have it until then. */
const KEEP_QUOTA_MS = 30_000
/** When Kueue tries a workload again that gave its quota back, in s. */
const RETRY_S = { least: 10, most: 600, unknown: 60 }
/** After Kueue has admitted a workload, its pods have this long to start before its leases end, in ms. */
const START_MS = 600_000
/** Kueue starts the pods of an admitted workload, and the scheduler places them, within this time, in ms. */
const PLACE_MS = 15_000
/** The message of a check changes at most this often while its data comes, in ms. */
const PROGRESS_MS = 10_000
/** And those of all checks together, in ms: Kueue reads each change. */
const BETWEEN_MS = 100

interface Verdict {
  readonly state: 'Pending' | 'Ready' | 'Retry' | 'Rejected'
  readonly message: string
  readonly requeueAfterSeconds?: number
}

interface CheckMeans extends VolumeMeans {
  readonly api: Pick<ApiServer, 'get' | 'patch'>
  readonly placement: Placement
  /** `/apis/kueue.x-k8s.io/v1beta2` */
  readonly kueue: string
  readonly nowMs: () => number
}

/**
 * Answers the AdmissionChecks of Kueue whose controller is `<driver>/staged`: a workload starts once nodes that suit it
 * have its datasets. Staging begins while it waits for quota, so that no GPU is held for a download.
 */
export class WorkloadChecks {
  readonly #means: CheckMeans
  readonly #controller: string
  readonly #toldAtMs = new Map<string, number>()

  constructor(means: CheckMeans) {
    this.#means = means
    this.#controller = `${means.driver}/staged`
  }

  /** Tells Kueue that a check of this controller is answered. */
  async activate(check: CheckObject): Promise<void> {
    if (check.controller !== this.#controller || check.isActive) return
    const condition = {
      ...{ type: 'Active', status: 'True', reason: 'Active' },
      message: 'dsc stages the datasets of workloads',
      lastTransitionTime: formatTime(this.#means.nowMs()),
    }
    const path = `${this.#means.kueue}/admissionchecks/${check.name}/status`
    await this.#means.api.patch(path, 'merge-patch', { status: { conditions: [condition] } })
  }

  /** The check of this controller that a workload waits for; undefined: none. */
  findCheck(
    { checks: states, admittedAtMs }: WorkloadObject,
    checks: Iterable<CheckObject>,
  ): string | undefined {
    if (admittedAtMs !== undefined) return undefined
    const own = new Set(
      [...checks].filter((each) => each.controller === this.#controller).map(({ name }) => name),
    )
    return states.find(({ name, state }) => own.has(name) && (state === 'Pending' || state === 'Ready'))?.name
  }

  /** Whether the scheduler has placed the pods of a workload, or nearly: their resources count from then on. */
  isPlaced({ admittedAtMs }: WorkloadObject): boolean {
    return admittedAtMs !== undefined && this.#means.nowMs() - admittedAtMs > PLACE_MS
  }

  /** Whether the leases of a workload are still needed. */
  isWaiting({ admittedAtMs }: WorkloadObject): boolean {
    return admittedAtMs === undefined || this.#means.nowMs() - admittedAtMs < START_MS
  }

  /** Brings a workload closer to its data, and answers its check. */
  async reconcile(workload: WorkloadObject, check: string): Promise<void> {
    const at = workload.checks.findIndex(({ name }) => name === check)
    const before = workload.checks[at]!
    const verdict = await this.#judge(workload)
    if (before.state === verdict.state && !this.#mayTell(workload, before.message, verdict)) return
    const path = `${this.#means.kueue}/namespaces/${workload.namespace}/workloads/${workload.name}/status`
    const value = { name: check, ...verdict, lastTransitionTime: formatTime(this.#means.nowMs()) }
    this.#toldAtMs.set(workload.uid, this.#means.nowMs())
    const patching = this.#means.api.patch(path, 'json-patch', [
      { op: 'test', path: `/status/admissionChecks/${at}/name`, value: check },
      { op: 'test', path: `/status/admissionChecks/${at}/state`, value: before.state },
      { op: 'replace', path: `/status/admissionChecks/${at}`, value },
    ])
    // Where Kueue has changed it since, the watch brings what it is now.
    await unlessRejected(['HTTP_404', 'HTTP_409', 'HTTP_422'], patching)
  }

  /** Forgets the workloads that are gone. */
  keepOnly(workloads: ReadonlyMap<string, unknown>): void {
    for (const uid of this.#toldAtMs.keys()) if (!workloads.has(uid)) this.#toldAtMs.delete(uid)
  }

  #mayTell({ uid }: WorkloadObject, message: string, verdict: Verdict): boolean {
    if (message === verdict.message || verdict.state === 'Ready') return false
    const toldAtMs = this.#toldAtMs.get(uid) ?? Number.NEGATIVE_INFINITY
    return this.#means.nowMs() - toldAtMs > Math.max(PROGRESS_MS, this.#toldAtMs.size * BETWEEN_MS)
  }

  async #judge(workload: WorkloadObject): Promise<Verdict> {
    const { namespace, podSets, hasQuota } = workload
    const states: Placed[] = []
    const staged = new Set<string>()
    for (const { name: podSet, count, spec } of podSets) {
      const datasets = await this.#find(namespace, spec)
      if (!Array.isArray(datasets)) return datasets as Verdict
      if (datasets.length === 0 || count === 0) continue
      for (const dataset of datasets) staged.add(dataset.name)
      const task = formatTask(workload, podSet)
      const requests = sumRequests(spec)
      const isPrefetch = !hasQuota
      states.push(
        await this.#means.placement.place({ task, namespace, spec, requests, count, datasets, isPrefetch }),
      )
    }
    return judgeStates(states, [...staged], hasQuota)
  }

  async #find(
    namespace: string,
    spec: Parameters<typeof findDatasets>[2],
  ): Promise<readonly Dataset[] | Verdict> {
    try {
      return await findDatasets(this.#means, namespace, spec)
    } catch (error) {
      const message = describeRefusedVolume(error)
      if (message === undefined) throw error
      return { state: error instanceof ClaimMissing ? 'Pending' : 'Rejected', message }
    }
  }
}

/**
 * | the pod sets are     | without quota | with quota reserved                                         |
 * |----------------------|---------------|-------------------------------------------------------------|
 * | all ready, unsuited  | Ready         | Ready: the scheduler decides                                |
 * | one is being staged  | Pending       | Pending if it takes under 30 s, else Retry after that time  |
 * | one is refused       | Pending       | Retry after 60 s: others may have the quota                 |
 */
export function judgeStates(
  states: readonly Placed[],
  datasets: readonly string[],
  hasQuota: boolean,
): Verdict {
  const refused = states.find((each) => each.state === 'refused')
  if (refused) {
    const requeueAfterSeconds = RETRY_S.unknown
    return hasQuota
      ? { state: 'Retry', message: refused.message, requeueAfterSeconds }
      : { state: 'Pending', message: refused.message }
  }
  const coming = states.filter((each) => each.state === 'staging')
  if (coming.length === 0) {
    const nodes = new Set(states.flatMap((each) => (each.state === 'ready' ? each.nodes : [])))
    return {
      state: 'Ready',
      message: nodes.size > 0 ? describeReady(datasets, [...nodes]) : 'nothing to stage',
    }
  }
  const message = coming.map((each) => each.message).join('; ')
  const isLong = coming.some(({ leftMs }) => leftMs !== undefined && leftMs > KEEP_QUOTA_MS)
  if (!hasQuota || !isLong) return { state: 'Pending', message }
  const leftS = Math.ceil(Math.max(...coming.map(({ leftMs }) => leftMs ?? 0)) / 1000)
  const requeueAfterSeconds = Math.min(RETRY_S.most, Math.max(RETRY_S.least, leftS))
  return { state: 'Retry', message, requeueAfterSeconds }
}

/** The tasks of a workload's leases: one for each set of its pods. */
export function listTasks(workload: WorkloadObject): readonly string[] {
  return workload.podSets.map(({ name }) => formatTask(workload, name))
}

function formatTask({ namespace, name }: WorkloadObject, podSet: string): string {
  return formatQueuedTask('workload', namespace, `${name}/${podSet}`)
}

function describeReady(datasets: readonly string[], nodes: readonly string[]): string {
  const shown = nodes.slice(0, 5).join(', ')
  return `${datasets.join(', ')} ready on ${shown}${nodes.length > 5 ? ` and ${nodes.length - 5} more` : ''}`
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
