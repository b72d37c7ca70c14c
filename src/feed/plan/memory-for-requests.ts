import { type ArenaBudgetOptions, planArenaBudget } from './arena-budget.js'

const STEP = 1.125
const ROUND_BYTES = 2 ** 20

/**
 * Returns the memory, in bytes, with which requests reach their intended size, to an eighth. Undefined if they do, or
 * if they cover what one batch takes from a node: only less than that costs several requests per batch.
 */
export function findMemoryForRequests(options: ArenaBudgetOptions): number | undefined {
  const demand = Math.ceil(
    Math.max(1, ...options.ranks.map(({ batchSize }) => batchSize)) / options.nodeCount,
  )
  const wanted = planArenaBudget({ ...options, memoryBytes: Number.MAX_SAFE_INTEGER }).k
  if (planArenaBudget(options).k >= Math.min(wanted, demand)) return undefined
  let memoryBytes = Math.max(1, options.memoryBytes) // multiplying 0 would never grow it
  while (planArenaBudget({ ...options, memoryBytes }).k < wanted) memoryBytes *= STEP
  return Math.ceil(memoryBytes / ROUND_BYTES) * ROUND_BYTES
}
