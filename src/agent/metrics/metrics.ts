import { formatLabels, formatPrometheus, type Labels } from '../../model/prometheus-text.js'
import { Histogram } from './histogram.js'

/** Counters and gauges in Prometheus' text format. */
export interface Metrics {
  add(name: string, labels: Labels, value?: number): void
  set(name: string, labels: Labels, value: number): void
  /** Adds a value to a histogram. */
  observe(name: string, labels: Labels, value: number): void
  /** Removes every series of a gauge, before its new values are set. */
  clear(name: string): void
  /** Sum over all series of a metric. */
  total(name: string): number
  format(): string
}

/** Every series that an agent exports, with its type and meaning. */
export const AGENT_METRICS = {
  dsc_build_info: ['gauge', '1, with the versions of dsc and Node, and the node'],
  dsc_sent_bytes_total: ['counter', 'bytes sent to other nodes, by dataset'],
  dsc_gateway_requests_total: ['counter', 'requests of S3 clients, by operation and status'],
  dsc_gateway_sent_bytes_total: ['counter', 'bytes sent to S3 clients, by origin'],
  dsc_gateway_failures_total: ['counter', 'failed downloads for S3 clients, by dataset and failure'],
  dsc_requests_total: ['counter', 'requests, by route and status'],
  dsc_staged_bytes_total: ['counter', 'bytes downloaded to this node, by origin'],
  dsc_staged_total: ['counter', 'datasets staged on this node'],
  dsc_hits_total: ['counter', 'uses that found their dataset ready, by dataset'],
  dsc_uses_total: ['counter', 'uses, by hit or wait'],
  dsc_dataset_wait_seconds: [
    'histogram',
    'wait until a task could read (0: ready), by dataset; the last 100',
  ],
  dsc_job_wait_seconds: ['histogram', 'wait until a task could read, by task; the last 100'],
  dsc_wait_seconds_total: ['counter', 'seconds until tasks could read, by task'],
  dsc_evictions_total: ['counter', 'copies evicted, by reason'],
  dsc_refusals_total: ['counter', 'refused downloads, by limit'],
  dsc_leases: ['gauge', 'live leases, by purpose'],
  dsc_copies: ['gauge', 'copies, by state'],
  dsc_volumes: ['gauge', 'datasets of pods, by namespace and state'],
  dsc_volume_bytes: ['gauge', 'bytes that pods have, by namespace'],
  dsc_arriving_readers: ['gauge', 'readers of copies that are being downloaded, by dataset'],
  dsc_arriving_waits: ['gauge', 'objects that these readers wait for, by dataset'],
  dsc_charged_bytes: ['gauge', 'bytes that copies use'],
  dsc_quota_bytes: ['gauge', 'bytes that copies may use'],
  dsc_disk_bytes: ['gauge', 'file system of the cache: capacity and free bytes'],
  dsc_certificate_expiry_timestamp_seconds: [
    'gauge',
    'end of the certificate of agent.tls, in seconds since 1970',
  ],
  dsc_connections: ['gauge', 'open connections'],
  dsc_sent_bytes_per_second: ['gauge', 'bytes sent per second since the last scrape'],
} as const satisfies Record<string, readonly ['counter' | 'gauge' | 'histogram', string]>

/** Maximum number of series per metric; more would mean a label with too many values. */
const MAX_SERIES = 1000
/** The label under which the excess is counted. */
const OTHER = 'other'

interface Series {
  readonly labels: Labels
  value: number
}

/** Starts with no series. */
export function createMetrics(): Metrics {
  const metrics = new Map<string, Map<string, Series>>()
  const seriesOf = (name: string) => {
    const found = metrics.get(name) ?? new Map<string, Series>()
    metrics.set(name, found)
    return found
  }
  const histograms = new Map<string, Histogram>()
  const find = (name: string, labels: Labels): Series => {
    const all = seriesOf(name)
    const key = formatLabels(labels)
    const known = all.get(key)
    if (known) return known
    if (all.size >= MAX_SERIES && Object.values(labels).some((value) => value !== OTHER)) {
      return find(name, Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER])))
    }
    const made = { labels, value: 0 }
    all.set(key, made)
    return made
  }
  return {
    add(name, labels, value = 1) {
      find(name, labels).value += value
    },
    set(name, labels, value) {
      find(name, labels).value = value
    },
    observe(name, labels, value) {
      const histogram = histograms.get(name) ?? new Histogram(name)
      histograms.set(name, histogram)
      histogram.observe(labels, value)
    },
    clear: (name) => seriesOf(name).clear(),
    total: (name) => [...seriesOf(name).values()].reduce((sum, { value }) => sum + value, 0),
    format: () =>
      formatPrometheus(
        Object.entries(AGENT_METRICS).map(([name, [type, help]]) => ({
          name,
          type,
          help,
          rows: histograms.get(name)?.rows() ?? [...(metrics.get(name)?.values() ?? [])],
        })),
      ),
  }
}
