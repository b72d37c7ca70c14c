import {
  type ArenaZone,
  createArenaZone,
  type Extent,
  type ExtentItem,
  type MoveBytes,
  type ZoneObserver,
} from './arena-zone.js'

/** `lazy` refills holes and compacts only when no hole fits; `patent` compacts at every threshold (seed 000). */
export const EVICTION_MODES = ['lazy', 'patent'] as const
export type EvictionMode = (typeof EVICTION_MODES)[number]

/** Bytes moved in one go before other work gets its turn: 4 MiB take about 1 ms on tmpfs. */
const MOVE_CHUNK_BYTES = 4 * 1024 * 1024

export interface ArenaOptions {
  readonly totalBytes: number
  readonly eviction: EvictionMode
  /** Share of its limit at which a zone evicts before it grows, 0–1. Default 0.9. */
  readonly threshold?: number
  /** Carries bytes inside the arena, in offsets of the whole arena. */
  readonly move: MoveBytes
  readonly observer?: ZoneObserver
  readonly moveChunkBytes?: number
}

/**
 * Who lies where in one fixed space. Prefetched samples fill it from the bottom; samples kept for the next epoch
 * and missed samples, which go straight to a client, from the top. The border is wherever the two meet.
 */
export interface ArenaPlan {
  readonly totalBytes: number
  readonly bottom: ArenaZone
  readonly top: ArenaZone
  /** Where the extent begins in the arena, in bytes. */
  offsetOf(extent: Extent): number
  /** Room for a prefetched sample, or undefined. `isDemanded` says that a client waits for it. */
  reserveBottom(length: number, sample: number, serial: number, isDemanded: boolean): Extent | undefined
  /** Room for prefetched samples side by side, or undefined where there is none without compaction. */
  reserveRun(items: readonly ExtentItem[]): Extent[] | undefined
  /** Room for a sample that is delivered at once or kept, or undefined. */
  reserveTop(length: number, sample: number, serial: number): Extent | undefined
  finish(extent: Extent): void
  /** How far each end may grow before it evicts, in bytes. Together at most `totalBytes`. */
  setLimits(limits: { bottomBytes: number; topBytes: number }): void
}

export function createArenaPlan(options: ArenaOptions): ArenaPlan {
  const { totalBytes, eviction, threshold = 0.9, move, moveChunkBytes = MOVE_CHUNK_BYTES } = options
  const bottom = createArenaZone(options.observer)
  const top = createArenaZone()
  let limits = { bottomBytes: totalBytes, topBytes: totalBytes }

  /** Holes first, then growth up to `limitBytes`, with a sweep in between when it would give enough. */
  const place = (
    zone: ArenaZone,
    other: ArenaZone,
    limitBytes: number,
    items: readonly ExtentItem[],
  ): Extent[] | undefined => {
    const hardBytes = totalBytes - other.usedBytes
    const softBytes = Math.min(hardBytes, limitBytes * threshold)
    const placed = zone.fill(items) ?? zone.append(items, softBytes)
    if (placed) return placed
    if (zone.doneBytes >= Math.max(items[0]!.length, zone.usedBytes / 16) && zone.sweep()) {
      const refilled = zone.fill(items) ?? zone.append(items, softBytes)
      if (refilled) return refilled
    }
    return zone.append(items, hardBytes)
  }
  const slideThen = (items: readonly ExtentItem[], hardBytes: number) => {
    bottom.slide(moveChunkBytes, move)
    return bottom.append(items, hardBytes)
  }

  /** Seed 000 to the letter: at the threshold runs of hit samples go and runs of unhit ones move up. */
  const reserveAsPatent = (items: readonly ExtentItem[], limitBytes: number, isDemanded: boolean) => {
    const isAtThreshold = bottom.usedBytes >= threshold * limitBytes && bottom.doneBytes > 0
    if (bottom.isSliding || isAtThreshold) bottom.slide(moveChunkBytes, move)
    const placed =
      bottom.append(items, limitBytes) ??
      (bottom.isSliding || bottom.doneBytes > 0 ? slideThen(items, limitBytes) : undefined)
    if (placed || !isDemanded) return placed
    bottom.sweep() // leased samples cannot move, so what waits behind them gets the holes between them
    return bottom.fill(items)
  }

  const reserveLazily = (items: readonly ExtentItem[], isDemanded: boolean): Extent[] | undefined => {
    const hardBytes = totalBytes - top.usedBytes
    if (bottom.isSliding) {
      bottom.slide(moveChunkBytes, move)
      if (bottom.isSliding) return bottom.append(items, hardBytes)
    }
    const placed = place(bottom, top, limits.bottomBytes, items)
    if (placed) return placed
    if (bottom.doneBytes > 0 && isDemanded && bottom.sweep()) {
      const refilled = place(bottom, top, limits.bottomBytes, items)
      if (refilled) return refilled
    }
    const isFragmented =
      hardBytes - bottom.liveBytes >= Math.max(items[0]!.length, isDemanded ? 0 : hardBytes / 8)
    if (!isFragmented) return undefined
    bottom.sweep() // finds holes again that were too small for other samples: filling one moves nothing
    return bottom.fill(items) ?? slideThen(items, hardBytes)
  }

  return {
    totalBytes,
    bottom,
    top,
    offsetOf: (extent) => (extent.zone === bottom ? extent.start : totalBytes - extent.start - extent.length),
    setLimits: (next) => {
      limits = next
    },
    finish: (extent) => extent.zone.finish(extent),
    reserveTop(length, sample, serial) {
      const items = [{ length, sample, serial }]
      const placed = place(top, bottom, limits.topBytes, items)
      if (placed || top.doneBytes + bottom.doneBytes === 0) return placed?.[0]
      bottom.sweep()
      top.sweep()
      return place(top, bottom, limits.topBytes, items)?.[0]
    },
    reserveBottom(length, sample, serial, isDemanded) {
      const items = [{ length, sample, serial }]
      if (eviction === 'lazy') return reserveLazily(items, isDemanded)?.[0]
      const limitBytes = Math.min(limits.bottomBytes, totalBytes - top.usedBytes)
      return reserveAsPatent(items, limitBytes, isDemanded)?.[0]
    },
    reserveRun(items) {
      if (eviction === 'patent' || bottom.isSliding) return undefined
      return place(bottom, top, limits.bottomBytes, items)
    },
  }
}
