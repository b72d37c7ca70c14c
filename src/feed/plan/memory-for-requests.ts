import { type ArenaBudgetOptions, planArenaBudget } from './arena-budget.js'

const STEP = 1.125
const ROUND_BYTES = 2 ** 20

/**
 * The memory, in bytes, with which requests are as large as they are meant to be, to an eighth; undefined where they
 * are, or hold what one batch takes of a node: less than that costs several requests per batch.
 */
export function findMemoryForRequests(options: ArenaBudgetOptions): number | undefined {
  const demand = Math.ceil(
    Math.max(1, ...options.ranks.map(({ batchSize }) => batchSize)) / options.nodeCount,
  )
  const wanted = planArenaBudget({ ...options, memoryBytes: Number.MAX_SAFE_INTEGER }).k
  if (planArenaBudget(options).k >= Math.min(wanted, demand)) return undefined
  let memoryBytes = Math.max(1, options.memoryBytes) // 0 would stay what it is
  while (planArenaBudget({ ...options, memoryBytes }).k < wanted) memoryBytes *= STEP
  return Math.ceil(memoryBytes / ROUND_BYTES) * ROUND_BYTES
}
