/**
 * The ring all-reduce as hops: data is cut into one chunk per rank, and in each of 2(P−1) hops every rank sends one
 * chunk to the next rank and receives one from the previous rank. During the first P−1 hops received chunks are added
 * ("reduce"), afterwards they replace ("gather"). The next hop sends the chunk that a hop receives.
 */
type Phase = 'reduce' | 'gather'

/** Hops of one all-reduce; none for a single rank. */
export function countHops(ranks: number): number {
  return 2 * (ranks - 1)
}

/** Chunk that `rank` sends in `hop`. */
export function chunkSent(rank: number, hop: number, ranks: number): number {
  return modulo(rank - hop, ranks)
}

/** Chunk that `rank` receives in `hop`. */
export function chunkReceived(rank: number, hop: number, ranks: number): number {
  return modulo(rank - hop - 1, ranks)
}

/** How a hop treats the chunk that it receives. */
export function phaseOf(hop: number, ranks: number): Phase {
  return hop < ranks - 1 ? 'reduce' : 'gather'
}

function modulo(value: number, count: number): number {
  return ((value % count) + count) % count
}
