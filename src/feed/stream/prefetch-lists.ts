/**
 * One list per storage node of the serials (see `rank-items.ts`) still to be requested, in the order of need. Lists are
 * filled only as far as they are used, not for the whole epoch at once: the results are the same, and an epoch of any
 * length takes only the memory of its next requests.
 */
export class PrefetchLists {
  readonly #lists: number[][]
  /** For each list, how many of its first entries have been taken. */
  readonly #heads: number[]

  constructor(nodeCount: number) {
    this.#lists = Array.from({ length: nodeCount }, () => [])
    this.#heads = new Array<number>(nodeCount).fill(0)
  }

  append(node: number, serial: number): void {
    this.#lists[node]!.push(serial)
  }

  /** Number of serials waiting on `node`. */
  waiting(node: number): number {
    return this.#lists[node]!.length - this.#heads[node]!
  }

  /** The waiting serial of `node` at `index`, 0 being the first. */
  at(node: number, index: number): number | undefined {
    return this.#lists[node]![this.#heads[node]! + index]
  }

  /** Removes and returns the first serial of `node`. */
  shift(node: number): number | undefined {
    const serial = this.at(node, 0)
    if (serial === undefined) return undefined
    this.#heads[node]!++
    this.#trim(node)
    return serial
  }

  /** Removes `serial` from the list of `node`, wherever it is. Returns whether it was there. */
  remove(node: number, serial: number): boolean {
    const at = this.#indexOf(node, serial)
    if (this.#lists[node]![at] !== serial) return false
    if (at === this.#heads[node]) {
      this.#heads[node]!++
      this.#trim(node)
    } else this.#lists[node]!.splice(at, 1)
    return true
  }

  /** Puts `serial` back into its place in the order. */
  restore(node: number, serial: number): void {
    const at = this.#indexOf(node, serial)
    if (at === this.#heads[node] && at > 0) {
      this.#heads[node]!--
      this.#lists[node]![at - 1] = serial
    } else this.#lists[node]!.splice(at, 0, serial)
  }

  /** Forgets every serial below `serial`. */
  dropBelow(serial: number): void {
    for (let node = 0; node < this.#lists.length; node++) this.#heads[node] = this.#indexOf(node, serial)
  }

  clear(): void {
    for (let node = 0; node < this.#lists.length; node++) {
      this.#lists[node] = []
      this.#heads[node] = 0
    }
  }

  /** Cuts off taken entries, rarely enough that a shift takes constant time on average. */
  #trim(node: number): void {
    const head = this.#heads[node]!
    if (head <= 1024 || head * 2 <= this.#lists[node]!.length) return
    this.#lists[node]!.splice(0, head)
    this.#heads[node] = 0
  }

  /** Returns the index of `serial`, or where it would be. */
  #indexOf(node: number, serial: number): number {
    const list = this.#lists[node]!
    let low = this.#heads[node]!
    let high = list.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (list[middle]! < serial) low = middle + 1
      else high = middle
    }
    return low
  }
}
