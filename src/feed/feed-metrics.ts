import type { FeedStream } from './feed-stream.js'
import type { Feeder } from './feeder.js'
import { countArenaUse } from './plan/arena-use.js'
import { K_ORIGINS } from './plan/request-sizing.js'
import { REQUEST_CLASSES_MS } from './sources/node-meter.js'
import { STALL_CAUSES } from './stream-meter.js'

export interface MetricsInput {
  readonly feeder: Feeder
  readonly ranks: readonly {
    readonly rank: number
    readonly stream: FeedStream
    readonly clients: number
    readonly skipped: number
  }[]
  readonly uptimeSeconds: number
}

/** The state of a feed as Prometheus text. Names are stable; rows are only ever added. */
export function formatMetrics({ feeder, ranks, uptimeSeconds }: MetricsInput): string {
  const { arena, counts, source } = feeder
  const memory = feeder.memory()
  const families = new Map<string, string[]>()
  const row = (name: string, value: number, labels = '', family = name) => {
    const lines = families.get(family) ?? []
    families.set(family, lines)
    lines.push(`dsc_feed_${name}${labels && `{${labels}}`} ${value}`)
  }
  row('uptime_seconds', uptimeSeconds)
  row('samples', source.table.count)
  row('dataset_bytes', source.table.totalBytes)
  row('nodes', source.nodeCount)
  row('k', memory.k)
  const { sizing } = feeder
  for (const from of K_ORIGINS) row('k_from', from === sizing.from ? 1 : 0, `from="${from}"`)
  row('request_bytes', sizing.bytes)
  const cost = sizing.cost()
  if (cost) {
    row('request_fixed_seconds', cost.fixedMs / 1000)
    row('request_bytes_per_second', cost.bytesPerMs * 1000)
  }
  row('low_water', memory.lowWater)
  row('arena_bytes', arena.totalBytes)
  row('arena_live_bytes', arena.bottom.liveBytes, 'end="prefetch"')
  row('arena_live_bytes', arena.top.liveBytes, 'end="next"')
  row('arena_used_bytes', arena.bottom.usedBytes, 'end="prefetch"')
  row('arena_used_bytes', arena.top.usedBytes, 'end="next"')
  const use = countArenaUse(arena)
  row('arena_leased_bytes', use.leasedBytes)
  row('arena_hole_bytes', use.holeBytes)
  const held = feeder.carryBytesHeld()
  row('next_bytes', held.current, 'list="cur"')
  row('next_bytes', held.next, 'list="nex"')
  row('arena_evicted_runs_total', counts.evictedRuns)
  row('arena_compactions_total', counts.compactions)
  row('arena_moved_bytes_total', counts.movedBytes)
  row('arena_move_passes_total', counts.movePasses)
  row('arena_copied_bytes_total', counts.copiedBytes)
  for (const { rank, stream, clients, skipped } of ranks) {
    const of = `rank="${rank}"`
    row('clients', clients, of)
    row('skipped_total', skipped, of)
    row('samples_delivered_total', stream.meter.samplesDelivered, of)
    row('bytes_delivered_total', stream.meter.bytesDelivered, of)
    row('hits_total', stream.counts.hits, `${of},kind="arena"`)
    row('hits_total', stream.counts.kept, `${of},kind="next"`)
    row('misses_total', stream.counts.misses, of)
    row('requests_total', stream.counts.requests, of)
    row('requested_samples_total', stream.counts.requested, of)
    row('carried_total', stream.counts.carried, of)
    row('carry_refused_total', stream.counts.carryRefused, of)
    row('dropped_total', stream.counts.dropped, of)
    for (const cause of STALL_CAUSES)
      row('stall_seconds_total', stream.meter.stallMs[cause] / 1000, `${of},cause="${cause}"`)
    row('time_to_first_batch_seconds', stream.meter.firstBatchMs / 1000, of)
    row('epoch_gap_seconds', stream.meter.epochGapMs / 1000, of)
    row('ready_batches', stream.countReadyBatches(), of)
  }
  for (const [node, meter] of feeder.nodeMeters.entries()) {
    const of = `node="${node}"`
    for (const [origin, bytes] of meter.bytes) row('read_bytes_total', bytes, `${of},source="${origin}"`)
    let atMost = 0
    for (const [i, boundMs] of REQUEST_CLASSES_MS.entries()) {
      atMost += meter.classes[i]!
      row('request_seconds_bucket', atMost, `${of},le="${boundMs / 1000}"`, 'request_seconds')
    }
    row('request_seconds_bucket', meter.requests, `${of},le="+Inf"`, 'request_seconds')
    row('request_seconds_sum', meter.requestMs / 1000, of, 'request_seconds')
    row('request_seconds_count', meter.requests, of, 'request_seconds')
  }
  for (const [name, value] of Object.entries(source.counters?.() ?? {})) row(`${name}_total`, value)
  return [...families]
    .map(([family, lines]) => `# TYPE dsc_feed_${family} ${typeOf(family)}\n${lines.join('\n')}\n`)
    .join('')
}

function typeOf(family: string): 'histogram' | 'counter' | 'gauge' {
  if (family === 'request_seconds') return 'histogram'
  return family.endsWith('_total') ? 'counter' : 'gauge'
}
