import type { CopyUse } from '../../model/copy.js'
import type { EvictionRank } from '../../policy/eviction-order.js'
import { findCandidates, isEvictable } from '../../policy/plan-eviction.js'

/** Reasons that keep a copy from being evicted, in the order in which an operator would remove them. */
export type Keeper =
  | 'leases'
  | 'lock'
  | 'stager'
  | 'no source'
  | 'being evicted'
  | 'not admitted yet'
  | 'interrupted listing'

/** All present reasons against evicting the copy; empty = it may be evicted when room is needed. */
export function findKeepers(copy: CopyUse): readonly Keeper[] {
  const keepers: Keeper[] = []
  if (copy.referenceCount > 0) keepers.push('leases')
  if (copy.lock !== null) keepers.push('lock')
  if (copy.isBeingStaged) keepers.push('stager')
  if (copy.source === null) keepers.push('no source')
  if (copy.state === 'evicting') keepers.push('being evicted')
  if (copy.state === 'reserved') keepers.push(copy.isBeingStaged ? 'not admitted yet' : 'interrupted listing')
  return keepers
}

/** The copy's rank in the order of eviction among `copiesOfNode`; undefined if it may not be evicted. */
export function findEvictionRank(copy: CopyUse, copiesOfNode: readonly CopyUse[]): EvictionRank | undefined {
  if (!isEvictable(copy)) return undefined
  const candidates = findCandidates(copiesOfNode)
  const index = candidates.findIndex((candidate) => candidate.copy.copyId === copy.copyId)
  const found = candidates[index]
  return found && { rank: index + 1, candidates: candidates.length, reason: found.reason }
}

/** The first and the last copy of each node to be evicted: worked out once for each list of copies. */
const TURNS = new WeakMap<
  readonly CopyUse[],
  Map<string, { readonly first?: string; readonly last?: string }>
>()

/** Whether the copy is the first or the last of its node to be evicted, among `copies` of any nodes. */
export function findEvictionTurn(
  { copyId, node }: CopyUse,
  copies: readonly CopyUse[],
): 'first' | 'last' | undefined {
  const known = TURNS.get(copies) ?? new Map()
  TURNS.set(copies, known)
  if (!known.has(node)) {
    const candidates = findCandidates(copies.filter((copy) => copy.node === node))
    known.set(node, { first: candidates[0]?.copy.copyId, last: candidates.at(-1)?.copy.copyId })
  }
  const { first, last } = known.get(node)!
  if (copyId === first) return 'first'
  return copyId === last ? 'last' : undefined
}
