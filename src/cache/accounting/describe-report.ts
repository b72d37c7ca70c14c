import type { Report } from './read-report.js'
import type { ReportAnswer } from './report-answer.js'

/** Cost of data that leaves the store, per GB of 10⁹ bytes. */
export interface EgressPrice {
  readonly perGigabyte: number
}

/** Reads an amount of money of 0 or more, without a currency. */
export function parsePrice(raw: string): number {
  const price = /^\d+(\.\d+)?$/.test(raw) ? Number(raw) : Number.NaN
  if (Number.isFinite(price)) return price
  throw new RangeError(`expected a price such as 0.09, found ${JSON.stringify(raw)}`)
}

/** Money saved at this price; null without a price. */
export function priceSaved({ savedBytes }: Report, price: EgressPrice | undefined): number | null {
  return price === undefined ? null : Math.round((savedBytes / 1e9) * price.perGigabyte * 100) / 100
}

/** `dsc report --json`. */
export function describeReport(report: Report, price: EgressPrice | undefined): ReportAnswer {
  const { sinceMs, untilMs, waits, refusals, unused, ...rest } = report
  return {
    dsc: 1,
    since: formatTime(sinceMs),
    until: formatTime(untilMs),
    ...rest,
    hitRate: report.uses === 0 ? null : report.hits / report.uses,
    egressPricePerGigabyte: price?.perGigabyte ?? null,
    savedMoney: priceSaved(report, price),
    waits: waits.map(({ atMs, ...wait }) => ({ ...wait, at: formatTime(atMs) })),
    refusals: refusals.map(({ lastAtMs, ...refusal }) => ({ ...refusal, lastAt: formatTime(lastAtMs) })),
    unused: unused.map(({ lastUsedAtMs, ...copy }) => ({ ...copy, lastUsedAt: formatTime(lastUsedAtMs) })),
  }
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString()
}
