/**
 * Bytes alive per event, with range updates: a segment tree that adds to a range, and finds the highest event or
 * the last event above a limit in a range, each in O(log n). Only this makes 10,000 tensors plannable in a second.
 */
export class LiveCurve {
  readonly length: number
  /** A power of two: event i is node `#leaves + i`, and node n's children are 2n and 2n + 1. */
  readonly #leaves: number
  readonly #highest: Float64Array
  /** Added to all events below a node, and not yet to its children. */
  readonly #pending: Float64Array

  constructor(bytesPerEvent: readonly number[]) {
    this.length = bytesPerEvent.length
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(1, this.length)))
    this.#highest = new Float64Array(2 * this.#leaves).fill(Number.NEGATIVE_INFINITY)
    this.#pending = new Float64Array(this.#leaves)
    this.#highest.set(bytesPerEvent, this.#leaves)
    for (let node = this.#leaves - 1; node > 0; node--) this.#update(node)
  }

  /** Adds `bytes` (may be negative) to every event from `from` to `to`, both included. */
  add(from: number, to: number, bytes: number): void {
    if (from > to) return
    let low = this.#leaves + from
    let high = this.#leaves + to
    for (; low <= high; low >>= 1, high >>= 1) {
      if (low % 2 === 1) this.#addBelow(low++, bytes)
      if (high % 2 === 0) this.#addBelow(high--, bytes)
    }
    for (let node = (this.#leaves + from) >> 1; node > 0; node >>= 1) this.#update(node)
    for (let node = (this.#leaves + to) >> 1; node > 0; node >>= 1) this.#update(node)
  }

  /** The highest value from `from` to `to`, both included; −Infinity for an empty range. */
  highest(from = 0, to = this.length - 1): number {
    if (from > to) return Number.NEGATIVE_INFINITY
    let low = this.#leaves + from
    let high = this.#leaves + to
    let left = this.#highest[low]!
    let right = this.#highest[high]!
    while (low >> 1 !== high >> 1) {
      if (low % 2 === 0) left = Math.max(left, this.#highest[low + 1]!)
      if (high % 2 === 1) right = Math.max(right, this.#highest[high - 1]!)
      low >>= 1
      high >>= 1
      left += this.#pending[low]!
      right += this.#pending[high]!
    }
    let most = Math.max(left, right)
    for (let node = low >> 1; node > 0; node >>= 1) most += this.#pending[node]!
    return most
  }

  /** The first event with the highest value. */
  firstHighest(): number {
    let node = 1
    let low = 0
    let high = this.#leaves - 1
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
    return from > to ? -1 : this.#lastAbove({ from, to }, limit, { node: 1, low: 0, high: this.#leaves - 1 })
  }

  #addBelow(node: number, bytes: number): void {
    this.#highest[node]! += bytes
    if (node < this.#leaves) this.#pending[node]! += bytes
  }

  #update(node: number): void {
    const most = Math.max(this.#highest[2 * node]!, this.#highest[2 * node + 1]!)
    this.#highest[node] = most + this.#pending[node]!
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
