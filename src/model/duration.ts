const MS_OF_UNIT: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** The input of `parseDuration`, as a regular expression without flags (so that a JSON Schema can contain it). */
export const DURATION_PATTERN = '^\\s*([0-9]+(\\.[0-9]+)?\\s*(ms|s|m|h|d)\\s*)+$'

/**
 * Parses a duration into milliseconds: `90s`, `24h`, `1h30m`, `250ms`, `7d`. Refuses a number without a unit: it could
 * be seconds or milliseconds. Throws a RangeError with what was expected and found.
 */
export function parseDuration(raw: string): number {
  let totalMs = Number.NaN
  if (new RegExp(DURATION_PATTERN).test(raw)) {
    totalMs = 0
    for (const [, count, unit] of raw.matchAll(/([0-9.]+)\s*(ms|s|m|h|d)/g)) {
      totalMs += Number(count) * MS_OF_UNIT[unit!]!
    }
    totalMs = Math.round(totalMs)
  }
  if (!Number.isSafeInteger(totalMs)) {
    throw new RangeError(`expected a duration such as 90s, 24h or 1h30m, found ${JSON.stringify(raw)}`)
  }
  return totalMs
}

/** Formats milliseconds for people, with at most two units: `250ms`, `90s` as `1m30s`, `1d2h`. */
export function formatDuration(durationMs: number): string {
  const sign = durationMs < 0 ? '-' : ''
  let restMs = Math.round(Math.abs(durationMs))
  if (restMs < 1000) return `${sign}${restMs}ms`
  const shown: string[] = []
  for (const unit of ['d', 'h', 'm', 's']) {
    const count = Math.floor(restMs / MS_OF_UNIT[unit]!)
    restMs -= count * MS_OF_UNIT[unit]!
    if (count > 0) shown.push(`${count}${unit}`)
    // Two neighbouring units are enough: 1d2h, never 1d4s.
    if (shown.length === 2 || (shown.length === 1 && count === 0)) break
  }
  return sign + shown.join('')
}

/** Maximum delay of a Node timer, ms: a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** Returns a delay, ms. Throws a RangeError if it is too long for a timer. */
export function requireTimer(waitMs: number, raw: string | number): number {
  if (waitMs <= MAX_TIMER_MS) return waitMs
  throw new RangeError(`expected at most ${formatDuration(MAX_TIMER_MS)}, found ${JSON.stringify(raw)}`)
}
