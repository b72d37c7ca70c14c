import type { CopyState, CopyUse } from '../../model/copy.js'

/** A dataset on a node, in brief. */
interface HeldCell {
  readonly state: CopyState
  readonly isLocked: boolean
  /** Live leases of all its copies on the node. */
  readonly referenceCount: number
  readonly bytes: number
  /** Unix epoch in ms. */
  readonly lastUsedAtMs: number
}

const STATES = ['ready', 'staging', 'reserved', 'evicting'] as const satisfies readonly CopyState[]
/** Flag in the same byte as the state. */
const LOCKED = 0x80

/** Gives each name a permanent number, so that 500,000 cells hold numbers. */
export class NameTable {
  readonly names: string[] = []
  readonly #numbers = new Map<string, number>()

  /** The number of a name; assigns a new one if needed. */
  numberOf(name: string): number {
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    this.#numbers.set(name, this.names.length)
    return this.names.push(name) - 1
  }
}

/** The copies of one node, at 23 bytes each: a cluster may have 1,000 nodes with 500 datasets. */
export class HeldCells {
  readonly length: number
  /** Ascending. */
  readonly #datasets: Uint32Array
  readonly #states: Uint8Array
  readonly #references: Uint16Array
  readonly #bytes: Float64Array
  readonly #usedAtMs: Float64Array

  constructor(copies: readonly CopyUse[], datasets: NameTable) {
    const rows = copies
      .map((copy) => ({ copy, dataset: datasets.numberOf(copy.dataset) }))
      .sort((a, b) => a.dataset - b.dataset || STATES.indexOf(a.copy.state) - STATES.indexOf(b.copy.state))
    this.length = rows.length
    this.#datasets = Uint32Array.from(rows, ({ dataset }) => dataset)
    this.#states = Uint8Array.from(rows, ({ copy }) => STATES.indexOf(copy.state) | (copy.lock ? LOCKED : 0))
    this.#references = Uint16Array.from(rows, ({ copy }) => Math.min(0xffff, copy.referenceCount))
    this.#bytes = Float64Array.from(rows, ({ copy }) => copy.chargedBytes)
    this.#usedAtMs = Float64Array.from(rows, ({ copy }) => copy.lastUsedAtMs)
  }

  /** The node's copies of a dataset as one cell, with the state of a ready one if any; undefined: it has none. */
  find(dataset: number): HeldCell | undefined {
    let [low, high] = [0, this.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#datasets[middle]! < dataset) low = middle + 1
      else high = middle
    }
    if (this.#datasets[low] !== dataset) return undefined
    const first = this.#cellAt(low)
    let { referenceCount, bytes, isLocked } = first
    for (let at = low + 1; this.#datasets[at] === dataset; at += 1) {
      const next = this.#cellAt(at)
      referenceCount += next.referenceCount
      bytes += next.bytes
      isLocked ||= next.isLocked
    }
    return { ...first, referenceCount, bytes, isLocked }
  }

  /** Calls `visit` with each copy. */
  forEach(visit: (dataset: number, cell: HeldCell) => void): void {
    for (let at = 0; at < this.length; at += 1) visit(this.#datasets[at]!, this.#cellAt(at))
  }

  #cellAt(at: number): HeldCell {
    const state = this.#states[at]!
    return {
      state: STATES[state & ~LOCKED]!,
      isLocked: (state & LOCKED) !== 0,
      referenceCount: this.#references[at]!,
      bytes: this.#bytes[at]!,
      lastUsedAtMs: this.#usedAtMs[at]!,
    }
  }
}
