import type { findEvictionRank, Keeper } from '../../cache/status/explain-copy.js'
import type { CopyUse } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatSpan } from './text/format-cells.js'

/** A labelled fact about what keeps a copy. */
interface KeepingFact {
  readonly label: 'kept by' | 'next to go'
  readonly text: string
  /** The subject of the fact; undefined: nothing keeps the copy. */
  readonly keeper?: Keeper
}

/** A copy with its keepers and eviction rank. */
interface KeptCopy {
  readonly copy: CopyUse
  readonly keepers: readonly Keeper[]
  readonly rank: ReturnType<typeof findEvictionRank>
}

/** Describes what keeps a copy or, if nothing does, when it will be evicted. */
export function describeKeeping({ copy, keepers, rank }: KeptCopy, nowMs: number): readonly KeepingFact[] {
  if (keepers.length > 0) {
    return keepers.map((keeper) => ({ label: 'kept by', text: describeKeeper(keeper, copy, nowMs), keeper }))
  }
  const facts: KeepingFact[] = [
    { label: 'kept by', text: 'nothing: it is idle and may be evicted when room is needed' },
  ]
  if (rank) {
    const text = `number ${rank.rank} of ${rank.candidates} evictable on ${copy.node}: ${rank.reason}`
    facts.push({ label: 'next to go', text })
  }
  return facts
}

function describeKeeper(keeper: Keeper, copy: CopyUse, nowMs: number): string {
  switch (keeper) {
    case 'leases':
      return formatCount(copy.referenceCount, 'lease')
    case 'lock':
      return copy.lock
        ? `a lock by ${copy.lock.by}, ${formatSpan(nowMs - copy.lock.atMs)} ago: ${copy.lock.reason}`
        : 'a lock'
    case 'stager':
      return 'a running download'
    case 'no source':
      return 'the lack of a remote source: dsc could not download it again'
    case 'being evicted':
      return 'nothing: dsc is deleting it'
    case 'not admitted yet':
      return 'its admission: dsc is still listing the source'
    case 'interrupted listing':
      return 'nothing: its listing was interrupted; dsc prepare starts it again, dsc evict deletes it'
  }
}
