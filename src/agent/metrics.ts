/** Counters and gauges in Prometheus' text format. */
export interface Metrics {
  add(name: string, labels: Labels, value?: number): void
  set(name: string, labels: Labels, value: number): void
  /** Removes every series of a gauge, before it is set anew. */
  clear(name: string): void
  /** Sum over all series of a metric. */
  total(name: string): number
  format(): string
}

export type Labels = Readonly<Record<string, string>>

/** Every series that an agent exports, with its type and meaning. */
const METRICS = {
  dsc_sent_bytes_total: ['counter', 'bytes sent to other nodes, by dataset'],
  dsc_requests_total: ['counter', 'requests, by route and status'],
  dsc_staged_bytes_total: ['counter', 'bytes staged on this node, by where they came from'],
  dsc_staged_total: ['counter', 'datasets staged on this node'],
  dsc_hits_total: ['counter', 'times a task found its dataset ready, by dataset'],
  dsc_wait_seconds_total: ['counter', 'seconds that tasks waited for a staging, by task'],
  dsc_evictions_total: ['counter', 'copies evicted, by reason'],
  dsc_refusals_total: ['counter', 'stagings that the policy refused'],
  dsc_leases: ['gauge', 'live leases, by purpose'],
  dsc_copies: ['gauge', 'copies, by state'],
  dsc_charged_bytes: ['gauge', 'bytes charged to the policy'],
  dsc_quota_bytes: ['gauge', 'bytes that the policy allows'],
  dsc_disk_bytes: ['gauge', 'the file system of the cache: capacity and free bytes'],
  dsc_connections: ['gauge', 'open connections'],
  dsc_sent_bytes_per_second: ['gauge', 'bytes sent per second, since the metrics were last asked for'],
} as const satisfies Record<string, readonly ['counter' | 'gauge', string]>

/** Series per metric; more would be a label with too many values. */
const MOST_SERIES = 1000

export function createMetrics(): Metrics {
  const values = new Map<string, Map<string, number>>()
  const seriesOf = (name: string) => {
    const found = values.get(name) ?? new Map<string, number>()
    values.set(name, found)
    return found
  }
  const keyOf = (series: Map<string, number>, labels: Labels) => {
    const key = formatLabels(labels)
    return series.has(key) || series.size < MOST_SERIES
      ? key
      : formatLabels(Object.fromEntries(Object.keys(labels).map((label) => [label, 'other'])))
  }
  return {
    add(name, labels, value = 1) {
      const series = seriesOf(name)
      const key = keyOf(series, labels)
      series.set(key, (series.get(key) ?? 0) + value)
    },
    set(name, labels, value) {
      const series = seriesOf(name)
      series.set(keyOf(series, labels), value)
    },
    clear: (name) => seriesOf(name).clear(),
    total: (name) => [...seriesOf(name).values()].reduce((sum, value) => sum + value, 0),
    format() {
      const lines: string[] = []
      for (const [name, [type, help]] of Object.entries(METRICS)) {
        lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
        for (const [labels, value] of values.get(name) ?? []) lines.push(`${name}${labels} ${value}`)
      }
      return `${lines.join('\n')}\n`
    },
  }
}

function formatLabels(labels: Labels): string {
  const entries = Object.entries(labels)
  if (entries.length === 0) return ''
  const quote = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
  return `{${entries.map(([label, value]) => `${label}="${quote(value)}"`).join(',')}}`
}
