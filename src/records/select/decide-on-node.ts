import type { CopyUse } from '../../model/copy.js'
import { sumUpRest } from '../../policy/copy-sums.js'
import type { EvictionPlan, UnreadCopies } from '../../policy/plan-eviction.js'
import type { CopyFilter } from '../contract/record-requests.js'
import type { Decide } from '../contract/record-store.js'
import type { SqlReader } from '../database/sql-database.js'
import { selectIdleLongest } from './foresee-order.js'
import { selectCopyUses } from './select-copy-uses.js'
import { sumCopiesInRecord } from './sum-copies.js'

/** A node with fewer copies than this has all of them read for a decision. */
const MANY_COPIES = 1000
/** Factor by which the number of idle copies to read grows if a decision needs more. */
const MORE = 32

/** The copies that a decision is about. */
interface Place {
  readonly node: string
  /** Only these copies. */
  readonly only?: Pick<CopyFilter, 'copyId' | 'datasets'> | undefined
  /** Unix epoch, ms. */
  readonly nowMs: number
}

/** Decides from the copies of a node. Of many, it reads only those that the decision needs, which are usually few. */
export async function decideOnNode<T extends object>(
  reader: SqlReader,
  { node, only, nowMs }: Place,
  decide: Decide<T>,
  many = MANY_COPIES,
): Promise<T> {
  if (only) return decide(await selectCopyUses(reader, { node, ...only }, nowMs))
  const first = await selectCopyUses(reader, { node, limit: many }, nowMs)
  if (first.length < many) return decide(first)
  for await (const { copies, unread } of selectNeeded(reader, { node, nowMs }, many)) {
    const decision = decide(copies, unread)
    if (!isProvisional(decision)) return decision
  }
  return decide(await selectCopyUses(reader, { node }, nowMs))
}

function isProvisional(decision: object & { readonly plan?: EvictionPlan }): boolean {
  return (decision.plan ?? (decision as Partial<EvictionPlan>)).isProvisional === true
}

/**
 * Sums up the copies of a node, and reads more and more of them: those that are coming or going, which are enough if
 * there is room, and then those that go first.
 */
async function* selectNeeded(
  reader: SqlReader,
  { node, nowMs }: Place,
  many: number,
): AsyncGenerator<{ readonly copies: readonly CopyUse[]; readonly unread: UnreadCopies }> {
  const [moving, sums] = await Promise.all([
    selectCopyUses(reader, { node, states: ['reserved', 'staging', 'evicting'] }, nowMs),
    sumCopiesInRecord(reader, { node }, nowMs),
  ])
  yield { copies: moving, unread: { sums: sumUpRest(sums, moving), usedSinceMs: 0 } }
  const several = await selectCopyUses(reader, { node, isOneOfSeveral: true }, nowMs)
  for (const limit of [many, many * MORE]) {
    const idle = await selectIdleLongest(reader, { node, nowMs }, limit)
    const byId = new Map([...moving, ...several, ...idle].map((copy) => [copy.copyId, copy]))
    const copies = [...byId.values()]
    const usedSinceMs = idle.length < limit ? Number.POSITIVE_INFINITY : idle.at(-1)!.lastUsedAtMs
    yield { copies, unread: { sums: sumUpRest(sums, copies), usedSinceMs } }
  }
}
