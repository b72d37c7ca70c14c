import { formatPrometheus, type Labels, type MetricRow } from '../../model/prometheus-text.js'
import { countArenaUse } from '../arena/arena-use.js'
import { type NodeMeter, REQUEST_CLASSES_MS } from '../sources/metered-source.js'
import type { LadderCounters } from '../sources/request-ladder.js'
import type { BatchStream } from '../stream/batch-stream.js'
import { STALL_CAUSES } from '../stream/stream-meter.js'
import type { FeedEngine } from './feed-engine.js'
import { K_ORIGINS } from './request-sizing.js'

/** The name of a family of FEED_METRICS. */
export type FeedMetric = keyof typeof FEED_METRICS

/** Every metric family of a feed, without the prefix `dsc_feed_`, and its help text. */
export const FEED_METRICS = {
  uptime_seconds: 'time since the start of the feed',
  samples: 'samples of the dataset',
  dataset_bytes: 'bytes of all samples',
  nodes: 'storage nodes (1: this disk)',
  k: 'samples in a request',
  k_from: 'origin of k: 1 for the label that holds',
  request_bytes: 'target size of a request',
  request_fixed_seconds: 'measured fixed time of a request',
  request_bytes_per_second: 'measured bandwidth of a node',
  low_water: 'samples ahead that trigger a request; -1 with --conformance',
  arena_bytes: 'memory of the feed',
  arena_live_bytes: 'bytes of samples: read ahead, or kept for the next epoch',
  arena_used_bytes: 'the same, with holes',
  arena_leased_bytes: 'bytes that clients hold',
  arena_hole_bytes: 'bytes between samples',
  next_bytes: 'bytes kept from the last epoch (cur) and for the next (nex)',
  arena_evicted_runs_total: 'runs of samples evicted',
  arena_compactions_total: 'compactions',
  arena_moved_bytes_total: 'bytes that compactions moved',
  arena_move_passes_total: 'passes of compactions',
  arena_copied_bytes_total: 'bytes copied within the arena',
  clients: 'clients of a rank',
  skipped_total: 'samples left out with --on-error skip, by rank',
  samples_delivered_total: 'samples delivered, by rank',
  bytes_delivered_total: 'bytes delivered, by rank',
  hits_total: 'samples found in memory, by rank: read ahead (arena) or kept (next)',
  misses_total: 'samples not in memory when a batch needed them, by rank',
  requests_total: 'requests, by rank',
  requested_samples_total: 'samples in all requests, by rank',
  carried_total: 'samples kept for the next epoch, by rank',
  carry_refused_total: 'samples not kept for lack of memory, by rank',
  dropped_total: 'samples no longer wanted when they arrived, by rank',
  stall_seconds_total: 'seconds that ranks waited for batches, by cause',
  batch_wait_seconds: 'wait for a batch, by rank and quantile (0.5, 0.99) of the newest 1,024',
  time_to_first_batch_seconds: 'time from the start of a rank to its first batch',
  epoch_gap_seconds: 'time of the first batch of the newest epoch, by rank',
  ready_batches: 'batches ready to deliver, by rank',
  read_bytes_total: 'bytes read, by node and source: local, peer, store',
  request_seconds: 'time of requests, by node',
  node_up: '1, or 0 while a storage node does not answer',
  retries_total: 'requests retried',
  hedges_total: 'samples requested elsewhere because their node was slow',
  failovers_total: 'requests that went to another node',
  arriving_waits_total: 'samples requested before their file arrived',
  row_groups_read_total: 'row groups of Parquet read whole',
  mapped_files: 'files that clients map',
  mapped_read_bytes_total: 'bytes read ahead for clients that map files',
  corrupt_total: 'samples with a wrong checksum',
  fallback_samples_total: 'samples read from the fallback',
  breakers_opened_total: 'times that a node was given up',
} as const satisfies Readonly<Record<string, string>> & {
  readonly [Name in keyof LadderCounters as `${Name}_total`]: string
}

/** A rank and its readers. */
export interface MeteredRank {
  readonly rank: number
  readonly stream: BatchStream
  readonly clients: number
  readonly skipped: number
}

/** Input for the metrics of a feed. */
export interface MetricsInput {
  readonly engine: FeedEngine
  readonly ranks: readonly MeteredRank[]
  readonly uptimeSeconds: number
}

/** The state of a feed as Prometheus text. Names are stable; rows are only ever added. */
export function formatMetrics({ engine, ranks, uptimeSeconds }: MetricsInput): string {
  const rows = new MetricRows()
  rows.add('uptime_seconds', uptimeSeconds)
  addSizes(rows, engine)
  addArena(rows, engine)
  for (const [i, rank] of ranks.entries())
    addRank(rows, rank, ranks.slice(0, i).filter((other) => other.rank === rank.rank).length)
  for (const [node, meter] of engine.source.meters.entries()) addNode(rows, node, meter)
  for (let node = 0; node < engine.source.nodeCount; node++)
    rows.add('node_up', engine.source.isNodeUp(node) ? 1 : 0, { node: String(node) })
  rows.add('mapped_files', engine.mapped?.files.descriptors.length ?? 0)
  for (const [name, value] of Object.entries({
    ...engine.source.counters(),
    ...engine.mapped?.touch.counters(),
  }))
    rows.add(`${name as keyof LadderCounters}_total`, value)
  return rows.format()
}

/** Rows by family, in the order in which the families were begun. */
class MetricRows {
  readonly #families = new Map<FeedMetric, MetricRow[]>()

  add(family: FeedMetric, value: number, labels: Labels = {}): void {
    this.#rowsOf(family).push({ name: `dsc_feed_${family}`, labels, value })
  }

  addHistogram(family: FeedMetric, part: 'bucket' | 'sum' | 'count', row: Omit<MetricRow, 'name'>): void {
    this.#rowsOf(family).push({ name: `dsc_feed_${family}_${part}`, ...row })
  }

  #rowsOf(family: FeedMetric): MetricRow[] {
    const rows = this.#families.get(family) ?? []
    this.#families.set(family, rows)
    return rows
  }

  format(): string {
    return formatPrometheus(
      Array.from(this.#families, ([family, rows]) => ({
        name: `dsc_feed_${family}`,
        type: typeOfFeedMetric(family),
        help: FEED_METRICS[family],
        rows,
      })),
    )
  }
}

/** The Prometheus type of a family. */
export function typeOfFeedMetric(family: string): 'histogram' | 'counter' | 'gauge' {
  if (family === 'request_seconds') return 'histogram'
  return family.endsWith('_total') ? 'counter' : 'gauge'
}

function addSizes(rows: MetricRows, { source, budget, sizing }: FeedEngine): void {
  rows.add('samples', source.table.count)
  rows.add('dataset_bytes', source.table.totalBytes)
  rows.add('nodes', source.nodeCount)
  rows.add('k', budget.k)
  for (const from of K_ORIGINS) rows.add('k_from', from === sizing.from ? 1 : 0, { from })
  rows.add('request_bytes', sizing.bytes)
  const cost = sizing.cost()
  if (cost) {
    rows.add('request_fixed_seconds', cost.fixedMs / 1000)
    rows.add('request_bytes_per_second', cost.bytesPerMs * 1000)
  }
  rows.add('low_water', budget.lowWater)
}

function addArena(rows: MetricRows, { arena, carryBytesHeld }: FeedEngine): void {
  const { space, counts } = arena
  rows.add('arena_bytes', space.totalBytes)
  rows.add('arena_live_bytes', space.bottom.liveBytes, { end: 'prefetch' })
  rows.add('arena_live_bytes', space.top.liveBytes, { end: 'next' })
  rows.add('arena_used_bytes', space.bottom.usedBytes, { end: 'prefetch' })
  rows.add('arena_used_bytes', space.top.usedBytes, { end: 'next' })
  const use = countArenaUse(space)
  rows.add('arena_leased_bytes', use.leasedBytes)
  rows.add('arena_hole_bytes', use.holeBytes)
  rows.add('next_bytes', carryBytesHeld.current, { list: 'cur' })
  rows.add('next_bytes', carryBytesHeld.next, { list: 'nex' })
  rows.add('arena_evicted_runs_total', counts.evictedRuns)
  rows.add('arena_compactions_total', counts.compactions)
  rows.add('arena_moved_bytes_total', counts.movedBytes)
  rows.add('arena_move_passes_total', counts.movePasses)
  rows.add('arena_copied_bytes_total', counts.copiedBytes)
}

/** `reader` numbers the loaders of one rank from 0; the first has no label for it. */
function addRank(rows: MetricRows, { rank, stream, clients, skipped }: MeteredRank, reader: number): void {
  const label = { rank: String(rank), ...(reader > 0 ? { reader: String(reader) } : {}) }
  const { meter, counts } = stream
  rows.add('clients', clients, label)
  rows.add('skipped_total', skipped, label)
  rows.add('samples_delivered_total', meter.samplesDelivered, label)
  rows.add('bytes_delivered_total', meter.bytesDelivered, label)
  rows.add('hits_total', counts.hits, { ...label, kind: 'arena' })
  rows.add('hits_total', counts.kept, { ...label, kind: 'next' })
  rows.add('misses_total', counts.misses, label)
  rows.add('requests_total', counts.requests, label)
  rows.add('requested_samples_total', counts.requested, label)
  rows.add('carried_total', counts.carried, label)
  rows.add('carry_refused_total', counts.carryRefused, label)
  rows.add('dropped_total', counts.dropped, label)
  for (const cause of STALL_CAUSES)
    rows.add('stall_seconds_total', meter.stallMs[cause] / 1000, { ...label, cause })
  for (const quantile of [0.5, 0.99])
    rows.add('batch_wait_seconds', meter.findWaitMs(quantile) / 1000, {
      ...label,
      quantile: String(quantile),
    })
  rows.add('time_to_first_batch_seconds', meter.firstBatchMs / 1000, label)
  rows.add('epoch_gap_seconds', meter.epochGapMs / 1000, label)
  rows.add('ready_batches', stream.countReadyBatches(), label)
}

function addNode(rows: MetricRows, node: number, meter: NodeMeter): void {
  const label = { node: String(node) }
  for (const [origin, bytes] of meter.bytes) rows.add('read_bytes_total', bytes, { ...label, source: origin })
  let atMost = 0
  for (const [i, boundMs] of REQUEST_CLASSES_MS.entries()) {
    atMost += meter.classes[i]!
    rows.addHistogram('request_seconds', 'bucket', {
      value: atMost,
      labels: { ...label, le: String(boundMs / 1000) },
    })
  }
  rows.addHistogram('request_seconds', 'bucket', { value: meter.requests, labels: { ...label, le: '+Inf' } })
  rows.addHistogram('request_seconds', 'sum', { value: meter.requestMs / 1000, labels: label })
  rows.addHistogram('request_seconds', 'count', { value: meter.requests, labels: label })
}
