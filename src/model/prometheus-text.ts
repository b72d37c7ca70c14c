/** Metrics with one name, in Prometheus' data model. */
interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** Its meaning; absent = clear from its name. */
  readonly help?: string
  readonly rows: readonly MetricRow[]
}

/** One number of a family. */
export interface MetricRow {
  /** Absent = the name of the family. Histograms have several. */
  readonly name?: string
  readonly labels: Labels
  readonly value: number
}

/** Label → value. */
export type Labels = Readonly<Record<string, string>>

/** Formats families in Prometheus' text format, version 0.0.4. */
export function formatPrometheus(families: readonly MetricFamily[]): string {
  return families
    .flatMap(({ name, type, help, rows }) => [
      ...(help === undefined ? [] : [`# HELP ${name} ${help}`]),
      `# TYPE ${name} ${type}`,
      ...rows.map((row) => `${row.name ?? name}${formatLabels(row.labels)} ${row.value}`),
    ])
    .map((line) => `${line}\n`)
    .join('')
}

/** Formats `{name="value",…}`; empty without labels. */
export function formatLabels(labels: Labels): string {
  const entries = Object.entries(labels)
  if (entries.length === 0) return ''
  const quote = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
  return `{${entries.map(([label, value]) => `${label}="${quote(value)}"`).join(',')}}`
}
