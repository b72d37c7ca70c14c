import { describeArrivals } from '../../cache/arrivals/describe-arrivals.js'
import type { Cache } from '../../cache/cache.js'
import { measureRoom } from '../../cache/kept-copies.js'
import type { CopyUse } from '../../model/copy.js'
import { findOwner } from '../../model/dataset.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { quotaBytes } from '../../policy/quota.js'
import type { Origins } from '../../sources/source.js'
import { findPodNamespace } from '../csi/volume-leases.js'
import type { Metrics } from './metrics.js'

const MAX_EVENTS = 10_000
/** Gauges whose labels come and go. */
const LABELLED_GAUGES = [
  ...(['dsc_copies', 'dsc_leases', 'dsc_arriving_readers', 'dsc_arriving_waits'] as const),
  ...(['dsc_volumes', 'dsc_volume_bytes'] as const),
]

/** The first limit that was exceeded: one of a few words. */
function reasonOf(detail: RecordEvent['detail']): string {
  const facts = detail.facts as { readonly limits?: readonly string[] } | undefined
  return facts?.limits?.[0] ?? 'other'
}

/**
 * Keeps an agent's metrics: counters from its node's history, gauges from the record's current state. Counts from now
 * on: history from before this process started is not counted again.
 */
export class AgentMetrics {
  readonly #cache: Cache
  readonly #metrics: Metrics
  readonly #connections: () => number
  #lastSequence: number | undefined
  #refreshing: Promise<void> | undefined
  #sent = { atMs: performance.now(), bytes: 0 }

  constructor(cache: Cache, metrics: Metrics, connections: () => number) {
    this.#cache = cache
    this.#metrics = metrics
    this.#connections = connections
  }

  /** Updates all metrics. Concurrent callers share one update, so that nothing is counted twice. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refresh(): Promise<void> {
    await this.#countEvents()
    await this.#measureCopies()
    await this.#measureDisk()
    this.#metrics.set('dsc_connections', {}, this.#connections())
    this.#measureRate()
  }

  async #countEvents(): Promise<void> {
    const { record, node } = this.#cache
    const last = this.#lastSequence
    const events = await record.listEvents({ node, limit: last === undefined ? 1 : MAX_EVENTS })
    this.#lastSequence = Math.max(last ?? 0, ...events.map(({ sequence }) => sequence))
    for (const event of events) if (event.sequence > (last ?? event.sequence)) this.#count(event)
  }

  #count(event: RecordEvent): void {
    const { detail } = event
    const dataset = labelOf(event.dataset)
    const metrics = this.#metrics
    switch (event.kind) {
      case 'evicted':
        metrics.add('dsc_evictions_total', { reason: event.reason })
        break
      case 'refused':
        metrics.add('dsc_refusals_total', { reason: reasonOf(detail) })
        break
      case 'leased':
        metrics.add('dsc_uses_total', { outcome: detail.isHit === true ? 'hit' : 'wait' })
        if (detail.isHit === true) metrics.add('dsc_hits_total', { dataset })
        if (typeof detail.waitedMs === 'number') {
          metrics.add('dsc_wait_seconds_total', { task: event.task ?? '' }, detail.waitedMs / 1000)
          metrics.observe('dsc_dataset_wait_seconds', { dataset }, detail.waitedMs / 1000)
          metrics.observe('dsc_job_wait_seconds', { task: event.task ?? '' }, detail.waitedMs / 1000)
        }
        break
      case 'staged': {
        metrics.add('dsc_staged_total', {})
        const origins = detail.origins as Origins | undefined
        const store = origins?.storeBytes ?? detail.fetchedBytes
        if (typeof store === 'number') metrics.add('dsc_staged_bytes_total', { from: 'store' }, store)
        for (const [peer, bytes] of Object.entries(origins?.peerBytes ?? {})) {
          metrics.add('dsc_staged_bytes_total', { from: peer }, bytes)
        }
      }
    }
  }

  async #measureCopies(): Promise<void> {
    const { record, node } = this.#cache
    const metrics = this.#metrics
    const nowMs = record.nowMs()
    const sums = await record.sumCopies({ node }, nowMs)
    const coming = await record.listCopies({ node, states: ['reserved', 'staging'] }, nowMs)
    const leases = await record.listLeases({ node })
    const live = leases.filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > nowMs)
    for (const gauge of LABELLED_GAUGES) metrics.clear(gauge)
    for (const [state, found] of Map.groupBy(sums, (sum) => sum.state))
      metrics.set('dsc_copies', { state }, addUp(found, 'copies'))
    for (const [purpose, found] of Map.groupBy(live, (lease) => lease.purpose))
      metrics.set('dsc_leases', { purpose }, found.length)
    metrics.set('dsc_charged_bytes', {}, addUp(sums, 'chargedBytes'))
    await this.#measureVolumes(live)
    await this.#measureArrivals(coming.filter((copy) => copy.isBeingStaged))
  }

  /** By namespace of their pods. Prometheus' own label `namespace` is that of the agents. */
  async #measureVolumes(leases: readonly PlacedLease[]): Promise<void> {
    const namespaces = Map.groupBy(leases, findPodNamespace)
    namespaces.delete(undefined)
    if (namespaces.size === 0) return
    const datasets = [...new Set([...namespaces.values()].flat().map(({ dataset }) => dataset))]
    const { record, node } = this.#cache
    const copies = await record.listCopies({ node, datasets }, record.nowMs())
    for (const [namespace, found] of namespaces) {
      const labels = { pod_namespace: namespace! }
      const ids = new Set(found.map(({ copyId }) => copyId))
      const used = copies.filter(({ copyId }) => ids.has(copyId))
      this.#metrics.set('dsc_volume_bytes', labels, addUp(used, 'chargedBytes'))
      const ready = new Set(used.filter(({ state }) => state === 'ready').map(({ copyId }) => copyId))
      const isReady = found.filter(({ copyId }) => ready.has(copyId)).length
      this.#metrics.set('dsc_volumes', { ...labels, state: 'ready' }, isReady)
      this.#metrics.set('dsc_volumes', { ...labels, state: 'waiting' }, found.length - isReady)
    }
  }

  async #measureArrivals(staged: readonly CopyUse[]): Promise<void> {
    const readers = await describeArrivals(this.#cache.root, staged)
    for (const { copyId, dataset: name } of staged) {
      const dataset = labelOf(name)
      const found = readers.get(copyId) ?? []
      const waits = found.reduce((sum, reader) => sum + reader.waits, 0)
      this.#metrics.set('dsc_arriving_readers', { dataset }, found.length)
      this.#metrics.set('dsc_arriving_waits', { dataset }, waits)
    }
  }

  async #measureDisk(): Promise<void> {
    const disk = await measureRoom(this.#cache)
    const allowedBytes = quotaBytes(this.#cache.policy, disk)
    if (Number.isFinite(allowedBytes)) this.#metrics.set('dsc_quota_bytes', {}, allowedBytes)
    this.#metrics.set('dsc_disk_bytes', { kind: 'capacity' }, disk.capacityBytes)
    this.#metrics.set('dsc_disk_bytes', { kind: 'free' }, disk.freeBytes)
  }

  #measureRate(): void {
    const [nowMs, bytes] = [performance.now(), this.#metrics.total('dsc_sent_bytes_total')]
    const { atMs, bytes: before } = this.#sent
    if (nowMs - atMs < 1000) return
    this.#metrics.set('dsc_sent_bytes_per_second', {}, Math.round(((bytes - before) / (nowMs - atMs)) * 1000))
    this.#sent = { atMs: nowMs, bytes }
  }
}

function addUp<Field extends 'copies' | 'chargedBytes'>(
  sums: readonly { readonly [name in Field]: number }[],
  field: Field,
): number {
  return sums.reduce((total, sum) => total + sum[field], 0)
}

/** Datasets of one user alone share a label: everybody on the machine may read the metrics. */
function labelOf(dataset: string): string {
  return findOwner(dataset) === undefined ? dataset : 'private'
}
