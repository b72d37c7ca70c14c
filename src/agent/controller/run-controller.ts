import { unlessRejected } from '../../failure/unless-code.js'
import { pause } from '../../platform/poll.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { type AgentAccess, prepareOnNode } from '../calls/agent-client.js'
import { type ApiServer, MISSING } from '../csi/api-server.js'
import type { Catalog } from '../csi/choose-dataset.js'
import { PodEvents } from '../csi/pod-events.js'
import { type NodeObject, type PodObject, parseNode, parsePod } from './cluster-objects.js'
import { ClusterView } from './cluster-view.js'
import { GatedPods } from './gated-pods.js'
import { Placement } from './placement.js'
import { formatQueuedTask } from './queued-lease.js'
import { type StagingAsked, Stagings } from './stagings.js'
import { WatchedObjects } from './watched-objects.js'
import { listTasks, WorkloadChecks } from './workload-checks.js'
import { type CheckObject, parseCheck, parseWorkload, type WorkloadObject } from './workload-object.js'

/** Longest pause between two rounds, ms; a change in the cluster begins one at once. */
const ROUND_MS = 2000
/** Changes that come within this time share a round, ms. */
const GATHER_MS = 200
const LEASES_MS = 30_000
/** How often to look whether Kueue has been installed, ms. */
const KUEUE_MS = 60_000
/** Jobs that are looked at side by side. */
const MAX_AT_ONCE = 16

/** The cluster, the record and the settings of the controller. */
export interface ControllerMeans {
  readonly api: ApiServer
  readonly record: RecordStore
  readonly access: AgentAccess
  readonly catalog: Catalog
  readonly driver: string
  /** Whether this replica leads now; others only watch. */
  readonly isLeading: () => boolean
  readonly note: (sentence: string) => void
}

/** The Kueue of the cluster: its workloads, and the checks that they wait for. */
interface Kueue {
  readonly checks: WorkloadChecks
  readonly objects: WatchedObjects<CheckObject>
  readonly workloads: WatchedObjects<WorkloadObject>
}

/** Stages the datasets of jobs that wait on Kubernetes: of gated pods, and of Kueue's workloads. */
export class Controller {
  readonly #means: ControllerMeans
  readonly #stopping: AbortSignal
  readonly #pods: WatchedObjects<PodObject>
  readonly #nodes: WatchedObjects<NodeObject>
  readonly #view: ClusterView
  readonly #placement: Placement
  readonly #events: PodEvents
  readonly #gates: GatedPods
  #kueue: Kueue | undefined
  #wake: () => void = () => {}
  #keptAtMs = Number.NEGATIVE_INFINITY
  #told: string | undefined

  constructor(means: ControllerMeans, stopping: AbortSignal) {
    this.#means = means
    this.#stopping = stopping
    const { api, record, driver, note } = means
    const onChange = () => this.#wake()
    this.#pods = new WatchedObjects({
      ...{ api, onChange, note },
      path: '/api/v1/pods',
      query: 'fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed',
      parse: parsePod,
    })
    this.#nodes = new WatchedObjects({ api, onChange, note, path: '/api/v1/nodes', parse: parseNode })
    this.#view = new ClusterView(record)
    const nowMs = () => record.nowMs()
    const prepare = (asked: StagingAsked, onProgress: Parameters<typeof prepareOnNode>[0]['onProgress']) =>
      this.#prepare(asked, onProgress)
    const stagings = new Stagings({ prepare, nowMs, onEnd: onChange })
    this.#placement = new Placement({ record, view: this.#view, stagings })
    this.#events = new PodEvents({
      ...{ api, component: `${driver}/staged` },
      onFailure: (error) => this.#noteFailure(error),
    })
    this.#gates = new GatedPods({
      ...means,
      events: this.#events,
      placement: this.#placement,
      view: this.#view,
    })
  }

  /** Works until the signal aborts. */
  async run(): Promise<void> {
    const stopping = this.#stopping
    const working = [this.#pods.follow(stopping), this.#nodes.follow(stopping), this.#followKueue()]
    while (!stopping.aborted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      if (this.#means.isLeading()) await this.#try(() => this.#round())
      await Promise.race([changed, pause(ROUND_MS, stopping)])
      await pause(GATHER_MS, stopping)
    }
    await Promise.all(working)
  }

  async #round(): Promise<void> {
    const { all: pods } = this.#pods
    const { all: nodes } = this.#nodes
    if (pods === undefined || nodes === undefined) return
    await this.#view.look(nodes.values(), pods.values())
    for (const pod of pods.values())
      if (pod.node !== undefined) this.#placement.forget(formatQueuedTask('pod', pod.namespace, pod.name))
    const gated = [...pods.values()].filter((pod) => this.#gates.isGated(pod))
    await this.#each(gated, (pod) => this.#gates.reconcile(pod))
    await this.#answerKueue()
    this.#events.keepOnly(pods)
    this.#gates.keepOnly(pods)
    if (performance.now() - this.#keptAtMs > LEASES_MS) {
      await this.#keepLeases(pods)
      this.#keptAtMs = performance.now()
    }
  }

  async #answerKueue(): Promise<void> {
    if (this.#kueue === undefined) return
    const { checks, objects, workloads } = this.#kueue
    const own = [...(objects.all?.values() ?? [])]
    for (const workload of workloads.all?.values() ?? [])
      if (checks.isPlaced(workload)) for (const task of listTasks(workload)) this.#placement.forget(task)
    await this.#each(own, (check) => checks.activate(check))
    const waiting = [...(workloads.all?.values() ?? [])]
      .flatMap((workload) => {
        const check = checks.findCheck(workload, own)
        return check === undefined ? [] : [{ workload, check }]
      })
      .toSorted(({ workload: a }, { workload: b }) => compareTurns(a, b))
    await this.#each(waiting, ({ workload, check }) => checks.reconcile(workload, check))
    if (workloads.all !== undefined) checks.keepOnly(workloads.all)
  }

  async #keepLeases(pods: ReadonlyMap<string, PodObject>): Promise<void> {
    const tasks = new Set<string>()
    for (const { isPending, namespace, name } of pods.values())
      if (isPending) tasks.add(formatQueuedTask('pod', namespace, name))
    const workloads = this.#kueue?.workloads.all
    for (const workload of workloads?.values() ?? [])
      if (this.#kueue?.checks.isWaiting(workload)) for (const task of listTasks(workload)) tasks.add(task)
    const isKueueUnknown = workloads === undefined // its workloads are to be listed first
    await this.#placement.keepLeases(
      (task) => tasks.has(task) || (isKueueUnknown && task.startsWith('queued:workload:')),
    )
  }

  /** Looks for Kueue until it is there, then follows its objects. */
  async #followKueue(): Promise<void> {
    const { api, note } = this.#means
    const stopping = this.#stopping
    while (!stopping.aborted) {
      const kueue = await findKueue(api).catch((error: Error) => {
        note(`Kueue: ${error.message}`)
        return undefined
      })
      if (kueue === undefined) {
        await pause(KUEUE_MS, stopping)
        continue
      }
      const watching = { api, note, onChange: () => this.#wake() }
      const objects = new WatchedObjects({ ...watching, path: `${kueue}/admissionchecks`, parse: parseCheck })
      const workloads = new WatchedObjects({ ...watching, path: `${kueue}/workloads`, parse: parseWorkload })
      const nowMs = () => Date.now()
      const checks = new WorkloadChecks({ ...this.#means, placement: this.#placement, kueue, nowMs })
      this.#kueue = { checks, objects, workloads }
      await Promise.all([objects.follow(stopping), workloads.follow(stopping)])
    }
  }

  async #prepare(
    { node, dataset, lease, isPrefetch }: StagingAsked,
    onProgress: Parameters<typeof prepareOnNode>[0]['onProgress'],
  ): Promise<void> {
    const url = this.#view.findAgent(node) ?? ''
    const call = { dataset, lease, isRefresh: false, isPrefetch, sharedWith: [] }
    const { access } = this.#means
    await prepareOnNode({ node, url, access, call, onProgress, signal: this.#stopping })
  }

  /** Works on each job; the failure of one holds up no other. */
  async #each<T>(jobs: readonly T[], work: (job: T) => Promise<void>): Promise<void> {
    const left = jobs.values()
    const one = async () => {
      for (const job of left) await this.#try(() => work(job))
    }
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, one))
  }

  /** Notes a failure of the cluster or the record once; the next round tries again. */
  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#noteFailure(error)
    }
  }

  #noteFailure(error: unknown): void {
    const { message } = error as Error
    if (!this.#stopping.aborted && this.#told !== message) this.#means.note(message)
    this.#told = message
  }
}

/** Orders workloads by their turn: higher priority first, then the older one. */
function compareTurns(a: WorkloadObject, b: WorkloadObject): number {
  return b.priority - a.priority || a.createdAtMs - b.createdAtMs || (a.uid < b.uid ? -1 : 1)
}

/** The path of Kueue's API; undefined: the cluster has none that this program knows. */
async function findKueue(api: ApiServer): Promise<string | undefined> {
  const group = await unlessRejected(MISSING, api.get('/apis/kueue.x-k8s.io'))
  const { versions } = (group ?? { versions: [] }) as { readonly versions: readonly { version: string }[] }
  const version = ['v1beta2', 'v1beta1'].find((each) => versions.some((one) => one.version === each))
  return version && `/apis/kueue.x-k8s.io/${version}`
}
