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

/** Learns the cost from the newest 32 requests that say something about it; medians, so that one hiccup is nothing. */
export interface RequestCostMeter {
  add(timing: RequestTiming): void
  /** Undefined until four requests have told of the fixed part, and four of the rate. */
  cost(): RequestCost | undefined
}

const KEPT = 32
const LEAST = 4
/** Bytes that come at once tell nothing about the rate; a socket is read by 256 KiB. */
const LEAST_SPREAD_BYTES = 128 * 1024

export function createRequestCostMeter(): RequestCostMeter {
  const rates: number[] = []
  const waits: { readonly ms: number; readonly bytes: number }[] = []
  const keep = <T>(list: T[], each: T) => {
    list.push(each)
    if (list.length > KEPT) list.shift()
  }
  return {
    add({ askedAtMs, silentSinceMs, firstAtMs, lastAtMs, firstBytes, bytes }) {
      if (bytes - firstBytes >= LEAST_SPREAD_BYTES && lastAtMs > firstAtMs)
        keep(rates, (bytes - firstBytes) / (lastAtMs - firstAtMs))
      // A request that stood behind another one waited for that one's bytes, which says nothing about its own cost.
      const waitMs = firstAtMs - askedAtMs
      if (firstAtMs - Math.max(askedAtMs, silentSinceMs) >= waitMs / 2)
        keep(waits, { ms: waitMs, bytes: firstBytes })
    },
    cost() {
      if (rates.length < LEAST || waits.length < LEAST) return undefined
      const bytesPerMs = median(rates)
      const fixedMs = Math.max(0, median(waits.map(({ ms, bytes }) => ms - bytes / bytesPerMs)))
      return { fixedMs, bytesPerMs }
    },
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}

/**
 * Bytes per request as long as nothing is measured, and at least. A near node would do with less, but a trainer that
 * takes all it gets then misses more often than lists are filled: over loopback, requests of 1 MiB bring about half
 * as many samples of 4 KiB as those of 4 MiB (`dsc feed bench --from … --batch 64`, two nodes).
 */
export const DEFAULT_REQUEST_BYTES = 4 * 2 ** 20
const MOST_REQUEST_BYTES = 16 * 2 ** 20

/** Bytes per request with which a node sends for nine tenths of the time: 9 t0 B, 4 to 16 MiB. */
export function planRequestBytes({ fixedMs, bytesPerMs }: RequestCost): number {
  const wanted = Math.round(9 * fixedMs * bytesPerMs)
  return Math.min(MOST_REQUEST_BYTES, Math.max(DEFAULT_REQUEST_BYTES, wanted))
}
