import type { ArenaExtents, Extent } from '../arena/arena-extents.js'
import { isInPrefix, type Prefix } from '../plan/prefix.js'
import { KeptSamples } from './kept-samples.js'

/**
 * Cache_next of seed 001, by epoch: entries of the running epoch are its curList, those of the next epoch its nexList.
 * A sample is wanted for an epoch if it is in the prefix of that epoch's order.
 */
export class CarryOver {
  readonly #extents: ArenaExtents
  readonly #prefixes = new Map<number, Prefix>()
  /** Epochs whose first prefix is being made. */
  readonly #awaited = new Set<number>()
  readonly #lists = new Map<number, KeptSamples>()
  /** Non-empty lists of past epochs. */
  #past: KeptSamples[] = []

  constructor(extents: ArenaExtents) {
    this.#extents = extents
  }

  /** Sets the prefix of `epoch`, the samples of its first part. `isWanted` is false for epochs without one. */
  setPrefix(epoch: number, prefix: Prefix): void {
    this.#awaited.delete(epoch)
    this.#prefixes.set(epoch, prefix)
  }

  /** Announces a prefix for `epoch`. */
  expectPrefix(epoch: number): void {
    if (!this.#prefixes.has(epoch)) this.#awaited.add(epoch)
  }

  /** Withdraws the announced prefix. */
  giveUpPrefix(epoch: number): void {
    this.#awaited.delete(epoch)
  }

  /** Whether the samples to keep for `epoch` are still unknown. */
  isAwaited(epoch: number): boolean {
    return this.#awaited.has(epoch)
  }

  hasPrefix(epoch: number): boolean {
    return this.#prefixes.has(epoch)
  }

  prefixSize(epoch: number): number {
    return this.#prefixes.get(epoch)?.size ?? 0
  }

  isWanted(epoch: number, sample: number): boolean {
    const prefix = this.#prefixes.get(epoch)
    return prefix !== undefined && isInPrefix(prefix, sample)
  }

  holds(epoch: number, sample: number): boolean {
    return this.#lists.get(epoch)?.has(sample) ?? false
  }

  /** S31, S32: puts a sample on the list of `epoch`. */
  insert(epoch: number, extent: Extent): void {
    const list = this.#lists.get(epoch) ?? new KeptSamples(this.#extents)
    this.#lists.set(epoch, list)
    this.#extents.mark(extent, 'kept')
    list.add(extent)
  }

  /** S31: takes a hit out of the list of `epoch`. */
  take(epoch: number, sample: number): Extent | undefined {
    return this.#lists.get(epoch)?.take(sample)
  }

  /** Forgets epochs before `epoch`. From then on, `takeUnused` can take their unused samples. */
  forgetBefore(epoch: number): void {
    for (const [old, list] of this.#lists) {
      if (old >= epoch) continue
      this.#past.push(list)
      this.#lists.delete(old)
    }
    for (const old of this.#awaited) if (old < epoch) this.#awaited.delete(old)
    for (const old of this.#prefixes.keys()) if (old < epoch) this.#prefixes.delete(old)
  }

  /** Takes unused samples of past epochs from the next `places` places of each of their lists. */
  takeUnused(places: number): Extent[] {
    const unused = this.#past.flatMap((list) => (list.size > 0 ? list.takeNext(places) : []))
    this.#past = this.#past.filter(({ size }) => size > 0)
    return unused
  }

  size(epoch: number): number {
    return this.#lists.get(epoch)?.size ?? 0
  }

  bytes(epoch: number): number {
    return this.#lists.get(epoch)?.bytes ?? 0
  }

  /** Bytes of all lists, including unused samples of past epochs. */
  heldBytes(): number {
    let bytes = 0
    for (const list of this.#lists.values()) bytes += list.bytes
    for (const list of this.#past) bytes += list.bytes
    return bytes
  }
}
