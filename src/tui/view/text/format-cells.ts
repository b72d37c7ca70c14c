import { formatByteSize } from '../../../model/byte-size.js'

const STEPS = [
  { limitMs: 60_000, unitMs: 1000, unit: 's' },
  { limitMs: 3_600_000, unitMs: 60_000, unit: 'm' },
  { limitMs: 48 * 3_600_000, unitMs: 3_600_000, unit: 'h' },
  { limitMs: 1000 * 86_400_000, unitMs: 86_400_000, unit: 'd' },
] as const

/** A duration in at most four characters: `0s`, `59s`, `12m`, `47h`, `400d`, `3y`. */
export function formatSpan(durationMs: number): string {
  const ms = Math.max(0, durationMs)
  for (const step of STEPS) if (ms < step.limitMs) return `${Math.floor(ms / step.unitMs)}${step.unit}`
  return `${Math.floor(ms / (365 * 86_400_000))}y`
}

/** `12:03:44` in the given zone; `utcOffsetMinutes` is positive east of Greenwich. */
export function formatClock(atMs: number, utcOffsetMinutes: number): string {
  return shift(atMs, utcOffsetMinutes).slice(11, 19)
}

/** `12:03:44` for the last 18 hours, `11-21 12:03` for earlier times: at most eleven characters. */
export function formatMoment(atMs: number, nowMs: number, utcOffsetMinutes: number): string {
  const at = shift(atMs, utcOffsetMinutes)
  return nowMs - atMs < 18 * 3_600_000 ? at.slice(11, 19) : `${at.slice(5, 10)} ${at.slice(11, 16)}`
}

/** `620/800 GiB`, or with both units where they differ: `900 MiB/1.2 TiB`. */
export function formatShare(usedBytes: number, allowedBytes: number): string {
  const used = formatByteSize(usedBytes)
  const allowed = formatByteSize(allowedBytes)
  const [usedNumber, usedUnit] = used.split(' ')
  return allowed.endsWith(` ${usedUnit}`) ? `${usedNumber}/${allowed}` : `${used}/${allowed}`
}

/** `43%`; never 100 before it is complete. */
export function formatPercent(part: number, whole: number): string {
  if (whole <= 0) return '0%'
  return `${part >= whole ? 100 : Math.min(99, Math.floor((100 * part) / whole))}%`
}

function shift(atMs: number, utcOffsetMinutes: number): string {
  return new Date(atMs + utcOffsetMinutes * 60_000).toISOString()
}
