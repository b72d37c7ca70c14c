import { findFirst } from '../../model/find-first.js'

/** A request for `bytes` in an arena from event `from` to event `to`, both included. */
interface ArenaRequest {
  readonly id: number
  readonly bytes: number
  readonly from: number
  readonly to: number
}

/** The place of every request, the size of the arena, and its size without gaps. */
interface ArenaLayout {
  readonly sizeBytes: number
  /** Most bytes in use at once: no layout can be smaller. */
  readonly liveBytes: number
  readonly offsets: ReadonlyMap<number, number>
}

/** Slots start at multiples of this, which suits copy engines and vector loads. */
export const ARENA_ALIGNMENT_BYTES = 512

/** How often the request at the top of the arena is placed earlier, to try for a smaller arena. */
const PROMOTIONS = 40
/** With more requests only the plain orders are tried: promotions would cost seconds. */
const PROMOTABLE = 300

/**
 * Gives every request an offset so that no two that overlap in time overlap in space. Tries several orders of greedy
 * first fit (size, lifetime, start, end), then keeps placing the topmost request first. Deterministic; the smallest
 * arena wins, ties go to the first found.
 */
export function layOutArena(requests: readonly ArenaRequest[]): ArenaLayout {
  const liveBytes = findMostLive(requests)
  const length = ({ from, to }: ArenaRequest) => to - from
  const orders: ((a: ArenaRequest, b: ArenaRequest) => number)[] = [
    (a, b) => b.bytes - a.bytes || a.from - b.from,
    (a, b) => length(b) - length(a) || b.bytes - a.bytes,
    (a, b) => a.from - b.from || b.bytes - a.bytes,
    (a, b) => b.to - a.to || b.bytes - a.bytes,
  ]
  let best: Fit | undefined
  for (const order of orders) {
    let ordered = requests.toSorted((a, b) => order(a, b) || a.id - b.id)
    for (let attempt = 0; attempt <= (requests.length <= PROMOTABLE ? PROMOTIONS : 0); attempt++) {
      const fit = fitFirst(ordered)
      if (!best || fit.sizeBytes < best.sizeBytes) best = fit
      if (best.sizeBytes <= liveBytes || !fit.top) break
      ordered = [fit.top, ...ordered.filter((request) => request !== fit.top)]
    }
    if (best && best.sizeBytes <= liveBytes) break
  }
  return { liveBytes, sizeBytes: best?.sizeBytes ?? 0, offsets: best?.offsets ?? new Map() }
}

interface Fit {
  readonly sizeBytes: number
  readonly offsets: Map<number, number>
  /** The request that ends highest. */
  readonly top: ArenaRequest | undefined
}

function fitFirst(ordered: readonly ArenaRequest[]): Fit {
  const offsets = new Map<number, number>()
  const placed: { from: number; to: number; low: number; high: number }[] = [] // sorted by `low`
  let sizeBytes = 0
  let top: ArenaRequest | undefined
  for (const request of ordered) {
    const { id, bytes, from, to } = request
    const length = align(bytes)
    let offset = 0
    for (const slot of placed) {
      if (slot.to < from || to < slot.from) continue
      if (slot.low >= offset + length) break
      offset = Math.max(offset, slot.high)
    }
    offsets.set(id, offset)
    const place = findFirst(placed.length, (at) => placed[at]!.low >= offset)
    placed.splice(place, 0, { from, to, low: offset, high: offset + length })
    if (offset + length > sizeBytes) {
      sizeBytes = offset + length
      top = request
    }
  }
  return { sizeBytes, offsets, top }
}

/** The most bytes in use at once: no layout is smaller. */
export function findMostLive(requests: readonly ArenaRequest[]): number {
  const changes = requests
    .flatMap(({ bytes, from, to }) => [
      { at: from, bytes: align(bytes) },
      { at: to + 1, bytes: -align(bytes) },
    ])
    .sort((a, b) => a.at - b.at || a.bytes - b.bytes)
  let live = 0
  let most = 0
  for (const { bytes } of changes) {
    live += bytes
    most = Math.max(most, live)
  }
  return most
}

function align(bytes: number): number {
  return Math.ceil(bytes / ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES
}
