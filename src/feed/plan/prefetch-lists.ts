/**
 * One list per storage node of the serials (see `stream-plan.ts`) still to be asked for, in the order in which
 * they will be needed. Lists are filled as far as they are looked into, not for the whole epoch at once: the
 * answers are the same, and an epoch of any length takes the memory of its next requests only.
 */
export interface PrefetchLists {
  append(node: number, serial: number): void
  /** Serials waiting on `node`. */
  waiting(node: number): number
  /** The waiting serial of `node` at `index`, 0 being the first. */
  at(node: number, index: number): number | undefined
  /** Removes and returns the first serial of `node`. */
  shift(node: number): number | undefined
  /** Takes `serial` out of the list of `node`, wherever it stands. Returns whether it was there. */
  remove(node: number, serial: number): boolean
  /** Puts `serial` back where the order wants it. */
  restore(node: number, serial: number): void
  /** Forgets every serial below `serial`. */
  dropBelow(serial: number): void
  clear(): void
}

/** Empty lists for `nodeCount` nodes. */
export function createPrefetchLists(nodeCount: number): PrefetchLists {
  const lists: number[][] = Array.from({ length: nodeCount }, () => [])
  const heads = new Array<number>(nodeCount).fill(0)
  /** Cuts off what was taken, rarely enough that a shift costs a constant on average. */
  const trim = (node: number) => {
    if (heads[node]! > 1024 && heads[node]! * 2 > lists[node]!.length) {
      lists[node]!.splice(0, heads[node]!)
      heads[node] = 0
    }
  }
  const indexOf = (node: number, serial: number): number => {
    const list = lists[node]!
    let low = heads[node]!
    let high = list.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (list[middle]! < serial) low = middle + 1
      else high = middle
    }
    return low
  }
  return {
    append: (node, serial) => void lists[node]!.push(serial),
    waiting: (node) => lists[node]!.length - heads[node]!,
    at: (node, index) => lists[node]![heads[node]! + index],
    shift(node) {
      const serial = lists[node]![heads[node]!]
      if (serial === undefined) return undefined
      heads[node]!++
      trim(node)
      return serial
    },
    remove(node, serial) {
      const at = indexOf(node, serial)
      if (lists[node]![at] !== serial) return false
      if (at === heads[node]) {
        heads[node]!++
        trim(node)
      } else lists[node]!.splice(at, 1)
      return true
    },
    restore(node, serial) {
      const at = indexOf(node, serial)
      if (at === heads[node] && at > 0) {
        heads[node]!--
        lists[node]![at - 1] = serial
      } else lists[node]!.splice(at, 0, serial)
    },
    dropBelow(serial) {
      for (let node = 0; node < nodeCount; node++) heads[node] = indexOf(node, serial)
    },
    clear() {
      for (let node = 0; node < nodeCount; node++) {
        lists[node] = []
        heads[node] = 0
      }
    },
  }
}
