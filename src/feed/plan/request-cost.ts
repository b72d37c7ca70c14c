/**
 * What a request to a storage node costs: `fixedMs` (t0), however little it asks for, and then the time that its
 * bytes take at `bytesPerMs`.
 */
export interface RequestCost {
  readonly fixedMs: number
  readonly bytesPerMs: number
}

/** When the samples of one request came, in ms of one clock. */
export interface RequestTiming {
  readonly askedAtMs: number
  /** The last moment at which the node had sent something, or before it was asked. */
  readonly silentSinceMs: number
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** Bytes that were there at `firstAtMs`, and at `lastAtMs`. */
  readonly firstBytes: number
  readonly bytes: number
}

/**
 * Bytes per request as long as nothing is measured, and at least. A near node would do with less, but a trainer that
 * takes all it gets then misses more often than lists are filled: over loopback, requests of 1 MiB bring about half
 * as many samples of 4 KiB as those of 4 MiB (`dsc feed bench --from … --batch 64`, two nodes).
 */
export const DEFAULT_REQUEST_BYTES = 4 * 2 ** 20
const MAX_REQUEST_BYTES = 16 * 2 ** 20

/** Bytes per request with which a node sends for nine tenths of the time: 9 t0 B, 4 to 16 MiB. */
export function planRequestBytes({ fixedMs, bytesPerMs }: RequestCost): number {
  const wanted = Math.round(9 * fixedMs * bytesPerMs)
  return Math.min(MAX_REQUEST_BYTES, Math.max(DEFAULT_REQUEST_BYTES, wanted))
}
