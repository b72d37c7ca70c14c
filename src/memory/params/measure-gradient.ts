import type { PushOutcome } from './central-options.js'
import type { PushKey } from './plan/decide-push.js'
import { findNonFinite, type ParameterLayout } from './plan/parameter-layout.js'
import { findLargest } from './plan/update-range.js'

/** Refuses a gradient of another length, or with values that are not finite; otherwise returns its largest magnitude. */
export function measureGradient(
  layout: ParameterLayout,
  { rank, step }: PushKey,
  gradient: Float32Array,
): number | Extract<PushOutcome, { kind: 'refuse' }> {
  if (gradient.length !== layout.length) {
    const message = `${gradient.length} values, expected ${layout.length}`
    return { kind: 'refuse', reason: 'size', message }
  }
  const largest = findLargest(gradient)
  if (!Number.isNaN(largest)) return largest
  const slot = findNonFinite(layout, gradient)
  const what = slot?.kind === 'buffer' ? 'buffer' : 'gradient of'
  const message = `rank ${rank}, step ${step}: the ${what} ${slot?.name} is not finite`
  return { kind: 'refuse', reason: 'nan', message }
}
