import { formatLabels, type Labels, type MetricRow } from '../../model/prometheus-text.js'

/** Upper bounds of the buckets, in seconds: ready at once, then up to four hours. */
const BOUNDS_SECONDS = [0, 1, 5, 15, 60, 300, 900, 3600, 14_400] as const
/** Maximum number of series, a dozen numbers each: more would mean a label with too many values. */
const MAX_SERIES = 100

interface Series {
  readonly labels: Labels
  /** Number of values in each bucket, not cumulative; the last is above every bound. */
  readonly classes: number[]
  sum: number
}

/**
 * A histogram for each set of labels. Above 100 sets, the least recently observed one is dropped: labels can be names
 * of jobs, of which there is no end.
 */
export class Histogram {
  readonly #name: string
  /** Newest last. */
  readonly #series = new Map<string, Series>()

  constructor(name: string) {
    this.#name = name
  }

  observe(labels: Labels, value: number): void {
    const key = formatLabels(labels)
    const found = this.#series.get(key) ?? {
      labels,
      classes: Array.from({ length: BOUNDS_SECONDS.length + 1 }, () => 0),
      sum: 0,
    }
    this.#series.delete(key)
    this.#series.set(key, found)
    const at = BOUNDS_SECONDS.findIndex((bound) => value <= bound)
    found.classes[at === -1 ? BOUNDS_SECONDS.length : at]! += 1
    found.sum += value
    if (this.#series.size <= MAX_SERIES) return
    const [oldest] = this.#series.keys()
    this.#series.delete(oldest!)
  }

  /** Cumulative, as Prometheus wants them: each bucket includes all lower ones. */
  rows(): readonly MetricRow[] {
    return [...this.#series.values()].flatMap(({ labels, classes, sum }) => {
      let atMost = 0
      const buckets = classes.map((count, index) => {
        atMost += count
        const le = index < BOUNDS_SECONDS.length ? String(BOUNDS_SECONDS[index]) : '+Inf'
        return { name: `${this.#name}_bucket`, labels: { ...labels, le }, value: atMost }
      })
      return [
        ...buckets,
        { name: `${this.#name}_sum`, labels, value: sum },
        { name: `${this.#name}_count`, labels, value: atMost },
      ]
    })
  }
}
