import type { CopyState, CopyUse } from '../model/copy.js'

/** The facts that decide whether a copy may be evicted. */
export interface CopyStanding {
  readonly state: CopyState
  readonly isLocked: boolean
  /** Whether it can be refetched. */
  readonly hasSource: boolean
  /** Whether it has live `use` or `transfer` leases. */
  readonly isUsed: boolean
  /** Whether a stager is working on it. */
  readonly isBeingStaged: boolean
}

/** Totals of one node's copies that policy treats alike: a node's 100,000 copies make a few of these. */
export interface CopySum extends CopyStanding {
  readonly node: string
  /** Whether they are, or stand for, stripes over several nodes. */
  readonly isStriped: boolean
  /** The parties that they count for; absent: unknown. */
  readonly parties?: readonly string[] | undefined
  readonly copies: number
  readonly chargedBytes: number
  readonly chargedInodes: number
  /** Charged bytes that are not on disk yet. */
  readonly unwrittenBytes: number
}

/** The standing of a copy with policy. */
export function standingOf(copy: CopyUse): CopyStanding {
  return {
    state: copy.state,
    isLocked: copy.lock !== null,
    hasSource: copy.source !== null,
    isUsed: copy.referenceCount > 0,
    isBeingStaged: copy.isBeingStaged,
  }
}

/** Sums up copies, as the record sums up those that it does not return one by one. */
export function sumUpCopies(copies: readonly CopyUse[]): readonly CopySum[] {
  const sums = new Map<string, { -readonly [Field in keyof CopySum]: CopySum[Field] }>()
  for (const copy of copies) {
    const standing = standingOf(copy)
    const isStriped = copy.stripe !== undefined || copy.layouts !== undefined
    const { node, parties } = copy
    const key = keyOf({ node, ...standing, isStriped, parties })
    let sum = sums.get(key)
    if (sum === undefined) {
      const nothing = { copies: 0, chargedBytes: 0, chargedInodes: 0, unwrittenBytes: 0 }
      sum = { node, ...standing, isStriped, parties, ...nothing }
      sums.set(key, sum)
    }
    sum.copies += 1
    sum.chargedBytes += copy.chargedBytes
    sum.chargedInodes += copy.chargedInodes
    sum.unwrittenBytes += Math.max(0, copy.chargedBytes - copy.writtenBytes)
  }
  return [...sums.values()]
}

/** Key under which copies that the policy treats alike are summed up. */
function keyOf(sum: CopyStanding & Pick<CopySum, 'node' | 'isStriped' | 'parties'>): string {
  const { node, state, parties } = sum
  const flags = `${+sum.isLocked}${+sum.hasSource}${+sum.isUsed}${+sum.isBeingStaged}${+sum.isStriped}`
  return `${node} ${state} ${flags} ${parties ? JSON.stringify(parties) : ''}`
}

/** Subtracts copies from sums that include them. */
export function sumUpRest(sums: readonly CopySum[], copies: readonly CopyUse[]): readonly CopySum[] {
  const known = new Map(sumUpCopies(copies).map((sum) => [keyOf(sum), sum]))
  return sums.flatMap((sum) => {
    const part = known.get(keyOf(sum))
    if (part?.copies === sum.copies) return []
    return {
      ...sum,
      copies: sum.copies - (part?.copies ?? 0),
      chargedBytes: sum.chargedBytes - (part?.chargedBytes ?? 0),
      chargedInodes: sum.chargedInodes - (part?.chargedInodes ?? 0),
      unwrittenBytes: sum.unwrittenBytes - (part?.unwrittenBytes ?? 0),
    }
  })
}
