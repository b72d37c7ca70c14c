import { DscError } from '../failure/dsc-error.js'
import type { MemoryProfile } from './step/profile.js'
import { findPeakBytes } from './step/profiled-step.js'

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
}

/** A limit on device memory: bytes, or a share of the unplanned peak (0–1). */
export type Budget =
  | { readonly kind: 'bytes'; readonly bytes: number }
  | { readonly kind: 'share'; readonly share: number }

/** Parses `24GiB`, `800MB`, `123456` or `50%` (of the peak without a plan). Errors name `option`. */
export function parseBudget(text: string, option = '--budget'): Budget {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*|%)$/.exec(text.trim())
  const amount = Number(match?.[1])
  const unit = match?.[2]
  if (match && unit === '%' && amount > 0) return { kind: 'share', share: amount / 100 }
  const factor = unit === undefined ? undefined : UNITS[unit]
  if (factor === undefined || !(amount > 0)) {
    throw new DscError('USAGE', `${option} ${text} is neither a size nor a share above 0`, {
      hint: `${option} 24GiB, or ${option} 50% of the peak without a plan`,
    })
  }
  return { kind: 'bytes', bytes: Math.floor(amount * factor) }
}

/** A budget in bytes; a share is taken of the peak of the profiled step without a plan. */
export function resolveBudget(budget: Budget, profile: MemoryProfile): number {
  return budget.kind === 'bytes' ? budget.bytes : Math.floor(budget.share * findPeakBytes(profile))
}

/** Formats bytes for people, for example `1.50 GiB`. */
export function formatBytes(bytes: number): string {
  for (const unit of ['TiB', 'GiB', 'MiB', 'KiB']) {
    const size = UNITS[unit]!
    if (Math.abs(bytes) >= size) return `${(bytes / size).toFixed(2)} ${unit}`
  }
  return `${bytes} B`
}
