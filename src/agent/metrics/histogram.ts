import { formatLabels, type Labels, type MetricRow } from '../../model/prometheus-text.js'

/** Bounds of the classes, seconds: ready at once, then up to four hours. */
const BOUNDS_SECONDS = [0, 1, 5, 15, 60, 300, 900, 3600, 14_400] as const
/** Each series is a dozen numbers: more of them would be a label with too many values. */
const MAX_SERIES = 100

interface Series {
  readonly labels: Labels
  /** Values in each class, not summed up; the last one is beyond every bound. */
  readonly classes: number[]
  sum: number
}

/**
 * How often values were how large, for each set of labels. Of more than 100 sets, the one that was observed longest ago
 * goes: labels may be the names of jobs, of which there is no end.
 */
export class Histogram {
  readonly #name: string
  /** The newest last. */
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

  /** As Prometheus wants them: each class with all below it. */
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
