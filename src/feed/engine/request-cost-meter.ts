import type { RequestCost, RequestTiming } from '../plan/request-cost.js'

const KEPT = 32
const LEAST = 4
/** Minimum spread to measure a rate: bytes that arrive together do not show it, and sockets are read by 256 KiB. */
const MIN_SPREAD_BYTES = 128 * 1024

/** Learns the cost from the newest 32 informative requests; takes medians, so that one hiccup does not count. */
export class RequestCostMeter {
  /** In bytes per ms. */
  readonly #rates: number[] = []
  readonly #waits: { readonly ms: number; readonly bytes: number }[] = []

  add({ askedAtMs, silentSinceMs, firstAtMs, lastAtMs, firstBytes, bytes }: RequestTiming): void {
    if (bytes - firstBytes >= MIN_SPREAD_BYTES && lastAtMs > firstAtMs)
      keep(this.#rates, (bytes - firstBytes) / (lastAtMs - firstAtMs))
    // A request queued behind another one waited for that one's bytes, so its wait says nothing about its own cost.
    const waitMs = firstAtMs - askedAtMs
    if (firstAtMs - Math.max(askedAtMs, silentSinceMs) >= waitMs / 2)
      keep(this.#waits, { ms: waitMs, bytes: firstBytes })
  }

  /** Undefined until four requests have measured the fixed part, and four the rate. */
  cost(): RequestCost | undefined {
    if (this.#rates.length < LEAST || this.#waits.length < LEAST) return undefined
    const bytesPerMs = median(this.#rates)
    const fixedMs = Math.max(0, median(this.#waits.map(({ ms, bytes }) => ms - bytes / bytesPerMs)))
    return { fixedMs, bytesPerMs }
  }
}

function keep<T>(list: T[], each: T): void {
  list.push(each)
  if (list.length > KEPT) list.shift()
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}
