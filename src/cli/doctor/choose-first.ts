import type { Check } from './check.js'

/** The first thing to do: the check that asks for it, and one command or setting. */
export interface FirstStep {
  readonly check: string
  readonly status: 'failed' | 'warning'
  readonly remedy: string
}

/**
 * Chooses what to do first: the earliest failed check, because later ones may only follow from it, else the earliest
 * warning. Undefined if there is nothing to do. Pure.
 */
export function chooseFirst(checks: readonly Check[]): FirstStep | undefined {
  for (const status of ['failed', 'warning'] as const) {
    const check = checks.find((candidate) => candidate.status === status)
    if (check) return { check: check.name, status, remedy: check.hint ?? check.detail }
  }
  return undefined
}
