import { describeArrivals } from '../cache/arrivals/describe-arrivals.js'
import type { Cache } from '../cache/cache.js'
import { quotaBytes } from '../policy/quota.js'
import type { Metrics } from './metrics.js'

/** Keeps an agent's metrics: counters from the history of its node, gauges from the record as it is. */
interface AgentMetrics {
  /** Brings all of them up to date. */
  refresh(): Promise<void>
}

const MAX_EVENTS = 10_000

/** Counts from now on: history from before this process began is not told again. */
export function keepAgentMetrics(cache: Cache, metrics: Metrics, connections: () => number): AgentMetrics {
  const { record, node } = cache
  let lastSequence: number | undefined
  let sent = { atMs: performance.now(), bytes: 0 }
  const countEvents = async () => {
    const limit = lastSequence === undefined ? 1 : MAX_EVENTS
    const events = await record.listEvents({ node, limit })
    const fresh = events.filter(({ sequence }) => sequence > (lastSequence ?? sequence))
    lastSequence = Math.max(lastSequence ?? 0, ...events.map(({ sequence }) => sequence))
    for (const event of fresh) {
      const { detail } = event
      switch (event.kind) {
        case 'evicted':
          metrics.add('dsc_evictions_total', { reason: event.reason })
          break
        case 'refused':
          metrics.add('dsc_refusals_total', {})
          break
        case 'leased':
          if (detail.isHit === true) metrics.add('dsc_hits_total', { dataset: event.dataset })
          if (typeof detail.waitedMs === 'number') {
            metrics.add('dsc_wait_seconds_total', { task: event.task ?? '' }, detail.waitedMs / 1000)
          }
          break
        case 'staged': {
          metrics.add('dsc_staged_total', {})
          const origins = detail.origins as { store: number; peers: Record<string, number> } | undefined
          const store = origins?.store ?? detail.fetchedBytes
          if (typeof store === 'number') metrics.add('dsc_staged_bytes_total', { from: 'store' }, store)
          for (const [peer, bytes] of Object.entries(origins?.peers ?? {})) {
            metrics.add('dsc_staged_bytes_total', { from: peer }, bytes)
          }
        }
      }
    }
  }
  const measure = async () => {
    const nowMs = record.nowMs()
    const copies = await record.listCopies({ node }, nowMs)
    const leases = await record.listLeases({ node })
    const disk = await cache.measureDisk()
    const gauges = ['dsc_copies', 'dsc_leases', 'dsc_arriving_readers', 'dsc_arriving_waits'] as const
    for (const gauge of gauges) metrics.clear(gauge)
    for (const [state, found] of Map.groupBy(copies, (copy) => copy.state)) {
      metrics.set('dsc_copies', { state }, found.length)
    }
    const staged = copies.filter((copy) => copy.isBeingStaged)
    const readers = await describeArrivals(cache.root, staged)
    for (const { copyId, dataset } of staged) {
      const found = readers.get(copyId) ?? []
      metrics.set('dsc_arriving_readers', { dataset }, found.length)
      metrics.set(
        'dsc_arriving_waits',
        { dataset },
        found.reduce((sum, { waits }) => sum + waits, 0),
      )
    }
    const live = leases.filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > nowMs)
    for (const [purpose, found] of Map.groupBy(live, (lease) => lease.purpose)) {
      metrics.set('dsc_leases', { purpose }, found.length)
    }
    metrics.set(
      'dsc_charged_bytes',
      {},
      copies.reduce((sum, copy) => sum + copy.chargedBytes, 0),
    )
    const allowedBytes = quotaBytes(cache.policy, disk)
    if (Number.isFinite(allowedBytes)) metrics.set('dsc_quota_bytes', {}, allowedBytes)
    metrics.set('dsc_disk_bytes', { kind: 'capacity' }, disk.capacityBytes)
    metrics.set('dsc_disk_bytes', { kind: 'free' }, disk.freeBytes)
    metrics.set('dsc_connections', {}, connections())
  }
  return {
    async refresh() {
      await countEvents()
      await measure()
      const [nowMs, bytes] = [performance.now(), metrics.total('dsc_sent_bytes_total')]
      if (nowMs - sent.atMs < 1000) return
      const rate = ((bytes - sent.bytes) / (nowMs - sent.atMs)) * 1000
      metrics.set('dsc_sent_bytes_per_second', {}, Math.round(rate))
      sent = { atMs: nowMs, bytes }
    },
  }
}
