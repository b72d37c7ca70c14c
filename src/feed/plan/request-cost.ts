/**
 * Cost of a request to a storage node: `fixedMs` (t0) regardless of size, plus the time for its bytes at `bytesPerMs`.
 */
export interface RequestCost {
  readonly fixedMs: number
  readonly bytesPerMs: number
}

/** Arrival times of the samples of one request, in ms of one clock. */
export interface RequestTiming {
  readonly askedAtMs: number
  /** The last time the node had sent something, or a time before the request. */
  readonly silentSinceMs: number
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** Bytes that had arrived at `firstAtMs`, and at `lastAtMs`. */
  readonly firstBytes: number
  readonly bytes: number
}

/**
 * Bytes per request until measured, and minimum after. A near node would do with less, but then a trainer that takes
 * everything it gets misses more often than lists are filled: over loopback, requests of 1 MiB bring about half as many
 * samples of 4 KiB as those of 4 MiB (`dsc feed bench --from … --batch 64`, two nodes).
 */
export const DEFAULT_REQUEST_BYTES = 4 * 2 ** 20
const MAX_REQUEST_BYTES = 16 * 2 ** 20

/** Bytes per request that keep a node sending for nine tenths of the time: 9 t0 B, 4 to 16 MiB. */
export function planRequestBytes({ fixedMs, bytesPerMs }: RequestCost): number {
  const wanted = Math.round(9 * fixedMs * bytesPerMs)
  return Math.min(MAX_REQUEST_BYTES, Math.max(DEFAULT_REQUEST_BYTES, wanted))
}
