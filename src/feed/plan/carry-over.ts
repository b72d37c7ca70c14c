import type { Extent } from './arena-zone.js'

/**
 * Cache_next of seed 001, by epoch: the entries of the running epoch are its curList, those of the epoch after it
 * its nexList. A sample is wanted for an epoch when it is in the prefix of that epoch's order.
 */
export interface CarryOver {
  /** Says which samples the first part of `epoch` consists of. `isWanted` is false for epochs never told of. */
  setPrefix(epoch: number, samples: Iterable<number>): void
  hasPrefix(epoch: number): boolean
  isWanted(epoch: number, sample: number): boolean
  holds(epoch: number, sample: number): boolean
  /** S31, S32: puts a sample on the list of `epoch`. */
  insert(epoch: number, sample: number, extent: Extent): void
  /** S31: takes a hit out of the list of `epoch`. */
  take(epoch: number, sample: number): Extent | undefined
  /** Forgets epochs before `epoch`; returns the extents that nobody used. */
  forgetBefore(epoch: number): Extent[]
  size(epoch: number): number
  prefixSize(epoch: number): number
  bytes(epoch: number): number
  /** Bytes of all lists. */
  heldBytes(): number
}

/** An empty Cache_next over `sampleCount` samples. */
export function createCarryOver(sampleCount: number): CarryOver {
  const prefixes = new Map<number, { bits: Uint32Array; size: number }>()
  const lists = new Map<number, { extents: Map<number, Extent>; bytes: number }>()
  return {
    setPrefix(epoch, samples) {
      const bits = new Uint32Array(Math.ceil(sampleCount / 32))
      let size = 0
      for (const sample of samples) {
        const bit = 1 << (sample & 31)
        if ((bits[sample >>> 5]! & bit) !== 0) continue
        bits[sample >>> 5]! |= bit
        size++
      }
      prefixes.set(epoch, { bits, size })
    },
    hasPrefix: (epoch) => prefixes.has(epoch),
    isWanted: (epoch, sample) =>
      ((prefixes.get(epoch)?.bits[sample >>> 5] ?? 0) & (1 << (sample & 31))) !== 0,
    holds: (epoch, sample) => lists.get(epoch)?.extents.has(sample) ?? false,
    insert(epoch, sample, extent) {
      let list = lists.get(epoch)
      if (!list) {
        list = { extents: new Map(), bytes: 0 }
        lists.set(epoch, list)
      }
      extent.state = 'kept'
      list.extents.set(sample, extent)
      list.bytes += extent.length
    },
    take(epoch, sample) {
      const list = lists.get(epoch)
      const extent = list?.extents.get(sample)
      if (!list || !extent) return undefined
      list.extents.delete(sample)
      list.bytes -= extent.length
      return extent
    },
    forgetBefore(epoch) {
      const unused: Extent[] = []
      for (const [of, list] of lists) {
        if (of >= epoch) continue
        unused.push(...list.extents.values())
        lists.delete(of)
      }
      for (const of of prefixes.keys()) if (of < epoch) prefixes.delete(of)
      return unused
    },
    size: (epoch) => lists.get(epoch)?.extents.size ?? 0,
    prefixSize: (epoch) => prefixes.get(epoch)?.size ?? 0,
    bytes: (epoch) => lists.get(epoch)?.bytes ?? 0,
    heldBytes: () => [...lists.values()].reduce((sum, list) => sum + list.bytes, 0),
  }
}

/** The longest prefix of `count` items, of which `sampleAt` names the samples, whose extents fit into `budgetBytes`. */
export function planPrefix(options: {
  readonly count: number
  readonly sampleAt: (item: number) => number
  readonly lengthOf: (sample: number) => number
  readonly budgetBytes: number
}): number[] {
  const { count, sampleAt, lengthOf, budgetBytes } = options
  const prefix: number[] = []
  let bytes = 0
  for (let item = 0; item < count; item++) {
    const sample = sampleAt(item)
    bytes += lengthOf(sample)
    if (bytes > budgetBytes) break
    prefix.push(sample)
  }
  return prefix
}
