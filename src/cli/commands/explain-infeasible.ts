import { DscError } from '../../failure/dsc-error.js'
import { formatBytes } from '../../memory/budget.js'
import type { PlanOutcome } from '../../memory/plan/plan-memory.js'
import { formatCount } from '../../model/format-count.js'

/** Explains where the step needs how much memory, and how much of that stays only because of `--smallest`. */
export function explainInfeasible(refused: {
  /** The thing that does not fit, for the message. */
  readonly what: string
  readonly budgetBytes: number
  readonly smallestBytes: number
  readonly outcome: Extract<PlanOutcome, { kind: 'infeasible' }>
}): DscError {
  const { what, budgetBytes, smallestBytes, outcome } = refused
  const { leastBytes, at, leftOut } = outcome
  const needs = `no ${what} fits ${budgetBytes} bytes (${formatBytes(budgetBytes)}): ${at} needs ${leastBytes} (${formatBytes(leastBytes)})`
  if (leftOut.leastBytes === leastBytes)
    return new DscError('PLAN_INFEASIBLE', needs, { hint: `--budget ${leastBytes}, or a smaller batch` })
  const kept = `${formatBytes(leftOut.bytes)} of it in ${formatCount(leftOut.storages, 'idle storage')} below --smallest ${formatBytes(smallestBytes)}`
  const all = `--smallest 1 needs ${leftOut.leastBytes} (${formatBytes(leftOut.leastBytes)})`
  const hint =
    leftOut.leastBytes <= budgetBytes
      ? '--smallest 1, or something between'
      : `--budget ${leastBytes}, with --smallest 1 ${leftOut.leastBytes}, or a smaller batch`
  return new DscError('PLAN_INFEASIBLE', `${needs}, ${kept}; ${all}`, { hint })
}
