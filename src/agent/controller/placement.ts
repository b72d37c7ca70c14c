import type { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { isLeaseLive, type PlacedLease } from '../../model/lease.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { ClusterView } from './cluster-view.js'
import type { PodSpec, Quantities } from './pod-needs.js'
import { isQueuedLease, leaseOfQueued, QUEUED_MS } from './queued-lease.js'
import type { Stagings } from './stagings.js'

/** A node that refused is chosen again after this time, in ms. */
const EXCLUDE_MS = 60_000
/** How long a job may wait for a node that suits it, in ms: kubelets and agents restart, and nodes are cordoned. */
const UNSUITED_MS = 60_000
/** Most nodes that a message names. */
const MAX_NAMED = 3

/** Pods that wait for their data, with the datasets that they may have. */
export interface Job {
  /** Name of its leases. */
  readonly task: string
  readonly namespace: string
  readonly spec: PodSpec
  /** Of one pod. */
  readonly requests: Quantities
  /** How many pods it has. */
  readonly count: number
  readonly datasets: readonly Dataset[]
  /** As in `planEviction`: a job that cannot start yet takes no room from others. */
  readonly isPrefetch: boolean
}

/**
 * Where a job stands. `leftMs`: how long its slowest download will still take, where that is known. `unsuited`: for a
 * minute, no node with an agent has suited its pods, full or not. `refused`: no suitable node has room, or each failed.
 */
export type Placed =
  | { readonly state: 'ready'; readonly nodes: readonly string[] }
  | { readonly state: 'staging'; readonly message: string; readonly leftMs: number | undefined }
  | { readonly state: 'refused'; readonly message: string }
  | { readonly state: 'unsuited' }

interface Refusal {
  readonly atMs: number
  readonly error: DscError
  readonly isPrefetch: boolean
}

interface PlacementMeans {
  readonly record: RecordStore
  readonly view: ClusterView
  readonly stagings: Stagings
}

/** Brings the data of waiting jobs to nodes that suit them, and holds a lease on it until their pods have their own. */
export class Placement {
  readonly #means: PlacementMeans
  readonly #chosen = new Map<string, { readonly nodes: readonly string[]; readonly isPrefetch: boolean }>()
  /** Task → node → why it cannot have the data. */
  readonly #refusals = new Map<string, Map<string, Refusal>>()
  /** Task → leases that were taken, as `[node, dataset]`. */
  readonly #leased = new Map<string, Set<string>>()
  /** Task → since when no node suits it, ms. */
  readonly #unsuited = new Map<string, number>()

  constructor(means: PlacementMeans) {
    this.#means = means
  }

  /** Brings a job closer to its data. Call it again until it is ready. */
  async place(job: Job): Promise<Placed> {
    const nodes = await this.#choose(job)
    const refusals = this.#refusals.get(job.task)
    if (nodes.length === 0) return refusals ? describeRefusals(refusals) : this.#waitForNode(job)
    this.#unsuited.delete(job.task)
    const states = []
    for (const node of nodes)
      for (const dataset of job.datasets) states.push({ node, ...(await this.#bring(job, node, dataset)) })
    const failed = states.filter((each) => each.state === 'failed')
    for (const { node, error } of failed) this.#refuse(job, node, error)
    if (failed.length > 0) return this.place(job) // on other nodes; each refusal leaves one less
    const waiting = states.filter((each) => each.state === 'under way')
    if (waiting.length === 0) return { state: 'ready', nodes }
    const slowest = waiting.toSorted((a, b) => (b.leftMs ?? Infinity) - (a.leftMs ?? Infinity))
    const shown = slowest.slice(0, MAX_NAMED).map(({ node, progress }) => `on ${node}: ${progress}`)
    const hidden = slowest.length > MAX_NAMED ? [`and ${slowest.length - MAX_NAMED} more`] : []
    const message = `staging ${[...shown, ...hidden].join('; ')}`
    return { state: 'staging', message, leftMs: slowest[0]!.leftMs }
  }

  /** Keeps the leases of living jobs and ends those of others. `isWaiting`: whether a task still waits for its pods. */
  async keepLeases(isWaiting: (task: string) => boolean): Promise<void> {
    const { record } = this.#means
    const nowMs = record.nowMs()
    for (const lease of await record.listLeases({ purpose: 'use' })) {
      if (!isQueuedLease(lease)) continue
      if (!isWaiting(lease.task)) await record.releaseUses({ leaseId: lease.leaseId }, nowMs)
      else if (needsRenewal(lease, nowMs)) await record.renewLease(lease.leaseId, nowMs + QUEUED_MS, nowMs)
    }
    const known = [this.#chosen, this.#refusals, this.#leased, this.#unsuited]
    for (const task of new Set(known.flatMap((map) => [...map.keys()])))
      if (!isWaiting(task)) this.forget(task)
  }

  /** Forgets where a job's pods were to go: they are placed, or gone. Its leases stay until `keepLeases` ends them. */
  forget(task: string): void {
    this.#means.view.forget(task)
    this.#chosen.delete(task)
    this.#refusals.delete(task)
    this.#leased.delete(task)
    this.#unsuited.delete(task)
  }

  #waitForNode({ task }: Job): Placed {
    const nowMs = performance.now()
    const sinceMs = this.#unsuited.get(task) ?? nowMs
    this.#unsuited.set(task, sinceMs)
    if (nowMs - sinceMs >= UNSUITED_MS) return { state: 'unsuited' }
    return { state: 'staging', message: 'no node with an agent of dsc suits it yet', leftMs: undefined }
  }

  async #choose(job: Job): Promise<readonly string[]> {
    const { view, record } = this.#means
    const refused = this.#refusals.get(job.task)
    for (const [node, { atMs, isPrefetch }] of refused ?? [])
      if (record.nowMs() - atMs > EXCLUDE_MS || (isPrefetch && !job.isPrefetch)) refused!.delete(node)
    if (refused?.size === 0) this.#refusals.delete(job.task)
    const known = this.#chosen.get(job.task)
    const isUsable = (node: string) => view.findAgent(node) !== undefined && !refused?.has(node)
    // Once it may start, it goes where there is room for it now, and that may be elsewhere.
    if (known?.isPrefetch === job.isPrefetch && known.nodes.every(isUsable)) return known.nodes
    const waiting = { ...job, datasets: job.datasets.map(({ name }) => name) }
    const nodes = await view.choose(job.task, waiting, new Set(refused?.keys()))
    if (nodes.length > 0) this.#chosen.set(job.task, { nodes, isPrefetch: job.isPrefetch })
    return nodes
  }

  async #bring(job: Job, node: string, dataset: Dataset) {
    const { record, view, stagings } = this.#means
    const leased = this.#leased.get(job.task) ?? new Set()
    const key = JSON.stringify([node, dataset.name])
    const copies = await view.listCopies(dataset.name)
    const isThere = copies.some((copy) => copy.node === node && copy.state === 'ready' && !copy.stripe)
    if (isThere && leased.has(key)) return { state: 'ready' } as const
    leased.delete(key)
    const nowMs = record.nowMs()
    const lease = leaseOfQueued(job.task, job.namespace, nowMs)
    // Not asked where no copy is: thousands of pods may wait for one dataset.
    if (isThere && (await record.leaseReady({ dataset: dataset.name, node, lease }, nowMs))) {
      this.#leased.set(job.task, leased.add(key))
      return { state: 'ready' } as const
    }
    return stagings.join({ node, dataset, lease, isPrefetch: job.isPrefetch })
  }

  #refuse({ task, isPrefetch }: Job, node: string, error: DscError): void {
    const refusals = this.#refusals.get(task) ?? new Map<string, Refusal>()
    refusals.set(node, { atMs: this.#means.record.nowMs(), error, isPrefetch })
    this.#refusals.set(task, refusals)
    this.#chosen.delete(task)
  }
}

function needsRenewal(lease: PlacedLease, nowMs: number): boolean {
  return isLeaseLive(lease, nowMs) && lease.expiresAtMs !== null && lease.expiresAtMs - nowMs < QUEUED_MS / 2
}

function describeRefusals(refusals: ReadonlyMap<string, Refusal>): Placed {
  // By name: each node is asked again in its own time, and the message should not change with that.
  const all = [...refusals].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, { error }]) => error)
  const shown = all.slice(0, MAX_NAMED).map(({ message }) => message.split('\n')[0]!)
  const hidden = all.length > MAX_NAMED ? [`and ${all.length - MAX_NAMED} more`] : []
  const isRoom = all.every(({ code }) => code === 'QUOTA_EXCEEDED' || code === 'DISK_FULL')
  const what = isRoom ? 'no node has room' : 'no node can stage it'
  return { state: 'refused', message: `${what}: ${[...shown, ...hidden].join('; ')}` }
}
