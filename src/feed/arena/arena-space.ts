import { ArenaExtents, type Extent, type ExtentItem } from './arena-extents.js'
import { ArenaZone, type MoveBytes, type ZoneObserver } from './arena-zone.js'

/** `lazy` refills holes and compacts only when no hole fits; `patent` compacts at every threshold (seed 000). */
export const EVICTION_MODES = ['lazy', 'patent'] as const
/** How an arena makes room. */
export type EvictionMode = (typeof EVICTION_MODES)[number]

/** Bytes to move before other work gets its turn: 4 MiB take about 1 ms on tmpfs. */
const MOVE_CHUNK_BYTES = 4 * 1024 * 1024

interface ArenaOptions {
  readonly totalBytes: number
  /** See ArenaExtents. */
  readonly expectedCount?: number
  readonly eviction: EvictionMode
  /** Share of its limit at which a zone evicts before it grows, 0–1. Default 0.9. */
  readonly threshold?: number
  /** Moves bytes inside the arena, in offsets of the whole arena. */
  readonly move: MoveBytes
  readonly observer?: ZoneObserver
  readonly moveChunkBytes?: number
}

/** `missed`: a client waits for the sample · `ahead`: no client waits yet. */
type Urgency = 'missed' | 'ahead'

/** One end of the arena while something is placed there. */
interface Growth {
  readonly zone: ArenaZone
  readonly other: ArenaZone
  readonly limitBytes: number
}

/**
 * The layout of one fixed space. Prefetched samples fill it from the bottom. Samples kept for the next epoch, and
 * missed samples, which go straight to a client, fill it from the top. The border is wherever the two meet.
 */
export class ArenaSpace {
  readonly totalBytes: number
  readonly extents: ArenaExtents
  readonly bottom: ArenaZone
  readonly top: ArenaZone
  readonly #eviction: EvictionMode
  readonly #threshold: number
  readonly #move: MoveBytes
  readonly #moveChunkBytes: number
  #limits: { readonly bottomBytes: number; readonly topBytes: number }

  constructor(options: ArenaOptions) {
    const { totalBytes } = options
    this.totalBytes = totalBytes
    this.extents = new ArenaExtents(options)
    this.top = new ArenaZone(this.extents, 'top')
    this.bottom = new ArenaZone(this.extents, 'bottom', options.observer)
    this.#eviction = options.eviction
    this.#threshold = options.threshold ?? 0.9
    this.#move = options.move
    this.#moveChunkBytes = options.moveChunkBytes ?? MOVE_CHUNK_BYTES
    this.#limits = { bottomBytes: totalBytes, topBytes: totalBytes }
  }

  /** Where the extent begins in the arena, in bytes. */
  offsetOf(extent: Extent): number {
    const start = this.extents.startOf(extent)
    return this.extents.isAtTop(extent) ? this.totalBytes - start - this.extents.lengthOf(extent) : start
  }

  /** Sets how far each end may grow before it evicts, in bytes. Together at most `totalBytes`. */
  setLimits(limits: { readonly bottomBytes: number; readonly topBytes: number }): void {
    this.#limits = limits
  }

  /** Marks an extent as evictable. */
  finish(extent: Extent): void {
    const zone = this.extents.isAtTop(extent) ? this.top : this.bottom
    zone.finish(extent)
  }

  /** Reserves room for a sample that is delivered at once or kept; undefined without room. */
  reserveTop(item: ExtentItem): Extent | undefined {
    const items = [item]
    const growth = { zone: this.top, other: this.bottom, limitBytes: this.#limits.topBytes }
    const placed = this.#place(growth, items)
    if (placed || this.top.doneBytes + this.bottom.doneBytes === 0) return placed?.[0]
    if (this.#eviction === 'lazy') this.bottom.sweep()
    this.top.sweep()
    return this.#place(growth, items)?.[0]
  }

  /** Reserves room for a prefetched sample; undefined without room. */
  reserveBottom(item: ExtentItem, urgency: Urgency): Extent | undefined {
    const items = [item]
    return (
      this.#eviction === 'lazy' ? this.#reserveLazily(items, urgency) : this.#reserveAsPatent(items, urgency)
    )?.[0]
  }

  /** Reserves adjacent room for prefetched samples; undefined where that would need compaction. */
  reserveRun(items: readonly ExtentItem[]): Extent[] | undefined {
    if (this.#eviction === 'patent' || this.bottom.isSliding) return undefined
    return this.#place(this.#bottomGrowth(), items)
  }

  #bottomGrowth(): Growth {
    return { zone: this.bottom, other: this.top, limitBytes: this.#limits.bottomBytes }
  }

  /** Tries holes first, then growth up to the limit, with a sweep in between if it would free enough. */
  #place({ zone, other, limitBytes }: Growth, items: readonly ExtentItem[]): Extent[] | undefined {
    const freeBytes = this.totalBytes - other.usedBytes
    // In the seed, the prefetch space has a fixed size that nothing else takes from.
    const hardBytes = this.#eviction === 'lazy' ? freeBytes : Math.min(freeBytes, limitBytes)
    const softBytes = Math.min(hardBytes, limitBytes * this.#threshold)
    const placed = zone.fill(items) ?? zone.append(items, softBytes)
    if (placed) return placed
    if (zone.doneBytes >= Math.max(items[0]!.length, zone.usedBytes / 16) && zone.sweep()) {
      const refilled = zone.fill(items) ?? zone.append(items, softBytes)
      if (refilled) return refilled
    }
    return zone.append(items, hardBytes)
  }

  #slide(): void {
    this.bottom.slide(this.#moveChunkBytes, this.#move)
  }

  /**
   * Follows seed 000 to the letter: at the threshold, runs of hit samples are evicted and runs of unhit ones move up,
   * including those of the request in progress.
   */
  #reserveAsPatent(items: readonly ExtentItem[], urgency: Urgency): Extent[] | undefined {
    const { bottom } = this
    const limitBytes = Math.min(this.#limits.bottomBytes, this.totalBytes - this.top.usedBytes)
    const isAtThreshold = bottom.usedBytes >= this.#threshold * limitBytes && bottom.doneBytes > 0
    if (bottom.isSliding || isAtThreshold) this.#slide()
    let placed = bottom.append(items, limitBytes)
    while (!placed && (bottom.isSliding || bottom.doneBytes > 0)) {
      this.#slide()
      placed = bottom.append(items, limitBytes)
    }
    if (urgency === 'ahead') for (const extent of placed ?? []) this.extents.mark(extent, 'placed')
    if (placed || urgency === 'ahead') return placed
    bottom.sweep() // leased samples cannot move, so samples that wait behind them get the holes between them
    return bottom.fill(items)
  }

  #reserveLazily(items: readonly ExtentItem[], urgency: Urgency): Extent[] | undefined {
    const { bottom } = this
    const hardBytes = this.totalBytes - this.top.usedBytes
    if (bottom.isSliding) {
      this.#slide()
      if (bottom.isSliding) return bottom.append(items, hardBytes)
    }
    const growth = this.#bottomGrowth()
    const placed = this.#place(growth, items)
    if (placed) return placed
    if (bottom.doneBytes > 0 && urgency === 'missed' && bottom.sweep()) {
      const refilled = this.#place(growth, items)
      if (refilled) return refilled
    }
    const worthBytes = Math.max(items[0]!.length, urgency === 'missed' ? 0 : hardBytes / 8)
    if (hardBytes - bottom.liveBytes < worthBytes) return undefined
    bottom.sweep() // finds holes again that were too small for other samples: filling one moves nothing
    const refilled = bottom.fill(items)
    if (refilled) return refilled
    this.#slide()
    return bottom.append(items, hardBytes)
  }
}
