/**
 * Bytes alive per event, with range updates: a segment tree that adds to a range, and finds the highest event or
 * the last event above a limit in a range, each in O(log n). Only this makes 10,000 tensors plannable in a second.
 */
export class LiveCurve {
  readonly length: number
  readonly #highest: Float64Array
  readonly #pending: Float64Array

  constructor(bytesPerEvent: readonly number[]) {
    this.length = bytesPerEvent.length
    this.#highest = new Float64Array(4 * Math.max(1, this.length))
    this.#pending = new Float64Array(4 * Math.max(1, this.length))
    this.#fill(bytesPerEvent, { node: 1, low: 0, high: this.length - 1 })
  }

  /** Adds `bytes` (may be negative) to every event from `from` to `to`, both included. */
  add(from: number, to: number, bytes: number): void {
    if (from <= to) this.#add({ from, to }, bytes, { node: 1, low: 0, high: this.length - 1 })
  }

  /** The highest value from `from` to `to`, both included; −Infinity for an empty range. */
  highest(from = 0, to = this.length - 1): number {
    return from > to
      ? Number.NEGATIVE_INFINITY
      : this.#max(from, to, { node: 1, low: 0, high: this.length - 1 })
  }

  /** The first event that has the highest value of all. */
  firstHighest(): number {
    let node = 1
    let low = 0
    let high = this.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      const goesLeft = this.#highest[2 * node]! >= this.#highest[2 * node + 1]!
      node = goesLeft ? 2 * node : 2 * node + 1
      if (goesLeft) high = middle
      else low = middle + 1
    }
    return low
  }

  /** The last event from `from` to `to` whose value exceeds `limit`, or −1. */
  lastAbove(from: number, to: number, limit: number): number {
    return from > to ? -1 : this.#lastAbove({ from, to }, limit, { node: 1, low: 0, high: this.length - 1 })
  }

  #fill(values: readonly number[], { node, low, high }: Range): void {
    if (low >= high) {
      this.#highest[node] = values[low] ?? 0
      return
    }
    const middle = (low + high) >> 1
    this.#fill(values, { node: 2 * node, low, high: middle })
    this.#fill(values, { node: 2 * node + 1, low: middle + 1, high })
    this.#highest[node] = Math.max(this.#highest[2 * node]!, this.#highest[2 * node + 1]!)
  }

  #add(span: Span, bytes: number, { node, low, high }: Range): void {
    const { from, to } = span
    if (to < low || high < from) return
    if (from <= low && high <= to) {
      this.#highest[node]! += bytes
      this.#pending[node]! += bytes
      return
    }
    const middle = (low + high) >> 1
    this.#add(span, bytes, { node: 2 * node, low, high: middle })
    this.#add(span, bytes, { node: 2 * node + 1, low: middle + 1, high })
    this.#highest[node] =
      Math.max(this.#highest[2 * node]!, this.#highest[2 * node + 1]!) + this.#pending[node]!
  }

  #max(from: number, to: number, { node, low, high }: Range): number {
    if (to < low || high < from) return Number.NEGATIVE_INFINITY
    if (from <= low && high <= to) return this.#highest[node]!
    const middle = (low + high) >> 1
    const left = this.#max(from, to, { node: 2 * node, low, high: middle })
    const right = this.#max(from, to, { node: 2 * node + 1, low: middle + 1, high })
    return Math.max(left, right) + this.#pending[node]!
  }

  #lastAbove(span: Span, limit: number, { node, low, high }: Range): number {
    const { from, to } = span
    if (to < low || high < from || this.#highest[node]! <= limit) return -1
    if (low === high) return low
    const middle = (low + high) >> 1
    const below = limit - this.#pending[node]!
    const right = this.#lastAbove(span, below, { node: 2 * node + 1, low: middle + 1, high })
    return right >= 0 ? right : this.#lastAbove(span, below, { node: 2 * node, low, high: middle })
  }
}

/** Events, both included. */
interface Span {
  readonly from: number
  readonly to: number
}

/** A node of the tree, and the events below it. */
interface Range {
  readonly node: number
  readonly low: number
  readonly high: number
}
