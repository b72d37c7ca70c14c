import { DscError } from '../../../failure/dsc-error.js'

/**
 * How pushes become versions, fixed before step 1. `sync`: one version per step, from all ranks. `ssp`: every push is
 * a version, no rank is more than `bound` steps ahead of the slowest. `async`: every push is a version.
 */
export type UpdateMode =
  | { readonly kind: 'sync' }
  | { readonly kind: 'ssp'; readonly bound: number }
  | { readonly kind: 'async' }

/** How to handle a sync step whose ranks do not all push in time: stop, or go on with at least `quorum`. */
export type LostPolicy = { readonly kind: 'abort' } | { readonly kind: 'quorum'; readonly quorum: number }

/** Parses `sync`, `async` or `ssp:3`. */
export function parseUpdateMode(text: string): UpdateMode {
  if (text === 'sync' || text === 'async') return { kind: text }
  const bound = /^ssp:(\d+)$/.exec(text)?.[1]
  if (bound !== undefined) return { kind: 'ssp', bound: Number(bound) }
  throw new DscError('USAGE', `mode ${text} is not sync, async or ssp:<steps>`, { hint: '--mode ssp:3' })
}

/** Parses `abort` or `quorum:3`. */
export function parseLostPolicy(text: string): LostPolicy {
  if (text === 'abort') return { kind: 'abort' }
  const quorum = /^quorum:([1-9]\d*)$/.exec(text)?.[1]
  if (quorum !== undefined) return { kind: 'quorum', quorum: Number(quorum) }
  throw new DscError('USAGE', `${text} is neither abort nor quorum:<ranks>`, { hint: '--on-lost quorum:3' })
}

/** A mode in the form that users type. */
export function formatUpdateMode(mode: UpdateMode): string {
  return mode.kind === 'ssp' ? `ssp:${mode.bound}` : mode.kind
}
