import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize } from '../../model/byte-size.js'
import type { CopyUse } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import {
  type EvictionPlan,
  isAbandoned,
  isEvictable,
  planToDelete,
  planToFree,
} from '../../policy/plan-eviction.js'
import type { EvictionRequest } from '../../records/contract/record-requests.js'
import type { Decide } from '../../records/contract/record-store.js'
import type { Cache } from '../cache.js'
import { FOR_OTHERS, giveKeptRoom, listKept, type RoomForOthers } from '../kept-copies.js'
import { expireDeadLeases } from '../leases/expire-leases.js'
import { missingCopy } from '../names/missing-copy.js'
import { chooseFreeHint, describeHeld } from './explain-refusal.js'
import { finishEvictions } from './finish-evictions.js'

/**
 * Selects what to evict: named datasets, a single copy, or the least recently used copies of at least that many bytes.
 */
export type EvictionSelection =
  | { readonly kind: 'datasets'; readonly names: readonly string[] }
  | { readonly kind: 'copy'; readonly copyId: string }
  | { readonly kind: 'free'; readonly bytes: number }

/** A copy to be evicted is leased or locked. */
export class CopyInUse extends DscError {
  readonly dataset: string

  constructor({ dataset, referenceCount }: CopyUse, message: string) {
    super('COPY_IN_USE', message, {
      hint: referenceCount > 0 ? `dsc leases --dataset ${dataset}` : `dsc unlock ${dataset}`,
    })
    this.dataset = dataset
  }
}

/**
 * Plans an eviction on this node without changing anything. Rejects with COPY_NOT_FOUND or COPY_IN_USE if a named copy
 * is missing here or may not be evicted, and with QUOTA_EXCEEDED if that many bytes cannot be freed.
 */
export async function planEvictionOf(cache: Cache, selection: EvictionSelection): Promise<EvictionPlan> {
  await expireDeadLeases(cache, { asksSlurm: true })
  const { node } = cache
  if (selection.kind === 'free') {
    const { bytes } = selection
    const toFree = decideFor(selection)
    const plan = await cache.record.foreseeEviction({ node }, toFree, cache.nowMs())
    if (plan.shortfalls.length > 0) throw notEnough(node, bytes, plan)
    return plan
  }
  const copies = await cache.record.listCopies({ node, ...filterOf(selection) }, cache.nowMs())
  const plan = decideFor(selection)(copies)
  const named = copies.filter(({ state }) => state !== 'evicting')
  if (selection.kind === 'datasets') {
    for (const name of selection.names) {
      if (named.some((copy) => copy.dataset === name)) continue
      const asked = { dataset: name, node }
      throw await missingCopy(cache.record, asked, { command: 'dsc evict', otherwise: `dsc why ${name}` })
    }
  } else if (named.length === 0) {
    throw new DscError('COPY_NOT_FOUND', 'the copy is gone', { hint: 'dsc status' })
  }
  const victims = new Set(plan.victims.map(({ copy }) => copy.copyId))
  const held = named.find((copy) => !victims.has(copy.copyId))
  if (held) {
    const leases = await cache.record.listLeases({ copyId: held.copyId })
    throw new CopyInUse(held, `cannot evict ${describeHeld(held, leases, cache.nowMs())}`)
  }
  return plan
}

/** An eviction that was carried out. */
export interface Evicted extends EvictionPlan {
  /** Copies of it that stay in the trash, so that an undo can bring them back. */
  readonly keptCopies: number
}

/**
 * Evicts the part of the selection that is still permitted, and returns it. A copy leased since the plan stays. `by`:
 * the user who can take it back, so that the files stay in the trash; absent: they are deleted.
 */
export async function evictCopies(cache: Cache, selection: EvictionSelection, by?: string): Promise<Evicted> {
  const plan = await cache.record.beginEviction(
    { node: cache.node, only: filterOf(selection), task: null, by },
    decideFor(selection),
    cache.nowMs(),
  )
  const others = selection.kind === 'free' ? { ...FOR_OTHERS, bytes: selection.bytes } : FOR_OTHERS
  return { ...plan, keptCopies: await finishOwnEviction(cache, plan, { by, others }) }
}

/**
 * Finishes the eviction that a user asked for. `others`: the room that is really free then. Resolves with how many
 * copies stay in the trash.
 */
export async function finishOwnEviction(
  cache: Cache,
  { victims }: EvictionPlan,
  { by, others = FOR_OTHERS }: { readonly by: string | undefined; readonly others?: RoomForOthers },
): Promise<number> {
  const copies = victims.map(({ copy }) => copy)
  const kept = await finishEvictions(cache, copies, { keepsFiles: by !== undefined })
  if (kept === 0) return 0
  await giveKeptRoom(cache, others)
  const ids = new Set(copies.map(({ copyId }) => copyId))
  return listKept(cache.root).filter(({ copyId }) => ids.has(copyId)).length
}

function decideFor(selection: EvictionSelection): Decide<EvictionPlan> {
  if (selection.kind === 'free') return (copies, unread) => planToFree(copies, selection.bytes, unread)
  return (copies) =>
    planToDelete(
      copies.filter((copy) => isEvictable(copy) || isLeftListing(copy)),
      'evicted by hand',
    )
}

/** A listing without a stager or a waiting task: the policy passes it over, because it takes no room. */
function isLeftListing(copy: CopyUse): boolean {
  return copy.state === 'reserved' && isAbandoned(copy) && copy.referenceCount === 0
}

/** Filter for the copies that were named; undefined: none were, so any copy may go. */
function filterOf(selection: EvictionSelection): EvictionRequest['only'] {
  if (selection.kind === 'free') return undefined
  return selection.kind === 'copy' ? { copyId: selection.copyId } : { datasets: selection.names }
}

function notEnough(node: string, bytes: number, plan: EvictionPlan): DscError {
  return new DscError(
    'QUOTA_EXCEEDED',
    `cannot evict ${formatByteSize(bytes)} on node ${node}: ${formatByteSize(plan.evictableBytes)} are evictable in ${formatCount(plan.evictableCopies, 'copy', 'copies')}; nothing was deleted`,
    { hint: chooseFreeHint(plan) },
  )
}
