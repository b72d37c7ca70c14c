import { isDscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { type NodePreference, preferNodes } from '../../policy/prefer-nodes.js'
import { ApiRefusal, type ApiServer } from '../csi/api-server.js'
import { CsiRefusal, describeCsiFailure } from '../csi/csi-failure.js'
import type { PodEvents } from '../csi/pod-events.js'
import type { PodObject } from './cluster-objects.js'
import type { ClusterView } from './cluster-view.js'
import { ClaimMissing, findDatasets, type VolumeMeans } from './find-datasets.js'
import type { Placement } from './placement.js'
import type { PodSpec } from './pod-needs.js'
import { formatQueuedTask } from './queued-lease.js'

/** How much a pod prefers nodes with its data that were not chosen for it, against 100 for the one that was. */
export const OTHERS_WEIGHT = 50

interface GateMeans extends VolumeMeans {
  readonly api: Pick<ApiServer, 'get' | 'patch'>
  readonly events: PodEvents
  readonly placement: Placement
  readonly view: ClusterView
}

/**
 * Pods with the scheduling gate `<driver>/staged`: the scheduler leaves them alone, so they hold no GPU, until a node
 * that suits them has their datasets. They then prefer it; none is tied to it.
 */
export class GatedPods {
  readonly #means: GateMeans
  readonly #gate: string
  /** Uid of a pod → what it mounts, which does not change: each claim costs two requests. */
  readonly #datasets = new Map<string, readonly Dataset[]>()

  constructor(means: GateMeans) {
    this.#means = means
    this.#gate = `${means.driver}/staged`
  }

  isGated({ gates }: PodObject): boolean {
    return gates.includes(this.#gate)
  }

  /** Brings a gated pod closer to its data, and opens its gate once that is there. */
  async reconcile(pod: PodObject): Promise<void> {
    const { events, placement } = this.#means
    const spec = pod.spec!
    const datasets = await this.#find(pod, spec)
    if (datasets === undefined) return
    if (datasets.length === 0) return this.#open(pod, spec, [])
    const task = formatQueuedTask('pod', pod.namespace, pod.name)
    const { namespace, requests } = pod
    const job = { task, namespace, spec, requests, count: 1, datasets, isPrefetch: false }
    const placed = await placement.place(job)
    const names = datasets.map(({ name }) => name)
    switch (placed.state) {
      case 'ready': {
        await this.#open(pod, spec, await this.#prefer(names, placed.nodes))
        const message = `${names.join(', ')} ready on ${placed.nodes.join(', ')}`
        return events.tell(pod, { reason: 'Staged', message })
      }
      case 'staging':
        return events.tell(pod, { reason: 'Staging', message: placed.message })
      case 'refused':
        return events.tell(pod, { reason: 'StagingRefused', message: placed.message, isWarning: true })
      case 'unsuited': // the scheduler says why, and an autoscaler may add a node
        await this.#open(pod, spec, [])
        return events.tell(pod, {
          reason: 'NotStaged',
          message: 'no node with an agent of dsc suits this pod; the scheduler decides',
          isWarning: true,
        })
    }
  }

  /** Forgets the pods that are gone. */
  keepOnly(pods: ReadonlyMap<string, unknown>): void {
    for (const uid of this.#datasets.keys()) if (!pods.has(uid)) this.#datasets.delete(uid)
  }

  async #find(pod: PodObject, spec: PodSpec): Promise<readonly Dataset[] | undefined> {
    const known = this.#datasets.get(pod.uid)
    if (known) return known
    try {
      const found = await findDatasets(this.#means, pod.namespace, spec)
      this.#datasets.set(pod.uid, found)
      return found
    } catch (error) {
      const message = describeRefusedVolume(error)
      if (message === undefined) throw error
      this.#means.events.tell(pod, { reason: 'StagingRefused', message, isWarning: true })
      return undefined
    }
  }

  /** Prefers the node that was chosen for the pod most, as others are meant for other pods, and then any with its data. */
  async #prefer(datasets: readonly string[], chosen: readonly string[]): Promise<readonly NodePreference[]> {
    const { view } = this.#means
    const others = (await view.findNodes(datasets)).filter((node) => !chosen.includes(node))
    const name = (nodes: readonly string[]) => nodes.map((node) => view.hostnameOf(node))
    return [preferNodes(name(chosen)), preferNodes(name(others), OTHERS_WEIGHT)].filter(
      (each) => each !== undefined,
    )
  }

  /** Removes the gate; in the same step, since Kubernetes then fixes the affinity, adds the preferred nodes. */
  async #open(pod: PodObject, spec: PodSpec, preferred: readonly NodePreference[]): Promise<void> {
    const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}`
    const gates = pod.gates.filter((gate) => gate !== this.#gate).map((name) => ({ name }))
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: pod.version },
      { op: 'replace', path: '/spec/schedulingGates', value: gates },
      ...(preferred.length > 0
        ? [{ op: 'add', path: '/spec/affinity', value: addPreferences(spec.affinity, preferred) }]
        : []),
    ]
    try {
      await this.#means.api.patch(path, 'json-patch', steps)
    } catch (error) {
      // Changed since it was read, or gone: the watch brings what it is now.
      if (!(error instanceof ApiRefusal) || ![404, 409, 422].includes(error.statusCode)) throw error
      if (error.statusCode === 422 && !/test|resourceVersion/.test(error.message)) throw error
    }
  }
}

/** A pod's affinity with more preferences. */
export function addPreferences(
  affinity: PodSpec['affinity'],
  preferred: readonly NodePreference[],
): PodSpec['affinity'] {
  const { nodeAffinity } = affinity ?? {}
  const before = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  return {
    ...affinity,
    nodeAffinity: {
      ...nodeAffinity,
      preferredDuringSchedulingIgnoredDuringExecution: [...before, ...preferred],
    },
  }
}

/** Why a pod cannot have what its volumes name, for its user; undefined: another failure. */
export function describeRefusedVolume(error: unknown): string | undefined {
  if (error instanceof ClaimMissing) return error.message
  const isRefused =
    error instanceof CsiRefusal || isDscError(error, 'DATASET_UNKNOWN') || isDscError(error, 'USAGE')
  return isRefused ? describeCsiFailure(error).message : undefined
}
