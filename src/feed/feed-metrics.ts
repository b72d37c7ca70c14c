import type { FeedStream } from './feed-stream.js'
import type { Feeder } from './feeder.js'

export interface MetricsInput {
  readonly feeder: Feeder
  readonly ranks: readonly { readonly rank: number; readonly stream: FeedStream; readonly clients: number }[]
  readonly uptimeSeconds: number
}

/** The state of a feed as Prometheus text. Names are stable; rows are only ever added. */
export function formatMetrics({ feeder, ranks, uptimeSeconds }: MetricsInput): string {
  const { arena, counts, source } = feeder
  const memory = feeder.memory()
  const lines: string[] = []
  const row = (name: string, value: number, labels = '') =>
    lines.push(`dsc_feed_${name}${labels && `{${labels}}`} ${value}`)
  row('uptime_seconds', uptimeSeconds)
  row('samples', source.table.count)
  row('dataset_bytes', source.table.totalBytes)
  row('nodes', source.nodeCount)
  row('k', memory.k)
  row('low_water', memory.lowWater)
  row('arena_bytes', arena.totalBytes)
  row('arena_live_bytes', arena.bottom.liveBytes, 'end="prefetch"')
  row('arena_live_bytes', arena.top.liveBytes, 'end="next"')
  row('arena_used_bytes', arena.bottom.usedBytes, 'end="prefetch"')
  row('arena_used_bytes', arena.top.usedBytes, 'end="next"')
  row('arena_moved_bytes_total', counts.movedBytes)
  row('arena_move_passes_total', counts.movePasses)
  row('arena_copied_bytes_total', counts.copiedBytes)
  for (const { rank, stream, clients } of ranks) {
    const of = `rank="${rank}"`
    row('clients', clients, of)
    row('samples_delivered_total', stream.samplesDelivered, of)
    row('bytes_delivered_total', stream.bytesDelivered, of)
    row('hits_total', stream.counts.hits, `${of},kind="arena"`)
    row('hits_total', stream.counts.kept, `${of},kind="next"`)
    row('misses_total', stream.counts.misses, of)
    row('requests_total', stream.counts.requests, of)
    row('requested_samples_total', stream.counts.requested, of)
    row('carried_total', stream.counts.carried, of)
    row('carry_refused_total', stream.counts.carryRefused, of)
    row('dropped_total', stream.counts.dropped, of)
    row('stall_seconds_total', stream.stallMs / 1000, of)
  }
  for (const [name, value] of Object.entries(source.counters?.() ?? {})) row(`${name}_total`, value)
  return `${lines.join('\n')}\n`
}
