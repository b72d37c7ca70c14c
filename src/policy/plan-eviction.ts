import { compareText } from '../model/compare-text.js'
import type { Copy, CopyUse } from '../model/copy.js'
import type { CachePolicy, DiskUsage } from '../model/policy.js'
import { type CopyStanding, type CopySum, standingOf, sumUpCopies } from './copy-sums.js'
import { type CacheLoad, findShortfalls, type Shortfall, type SpaceRequest } from './quota.js'
import { takeByShare, type Victim } from './take-by-share.js'

/**
 * The copies that an eviction will delete. Planning changes nothing; the record applies the plan in one transaction.
 */
export interface EvictionPlan {
  /** In the order of deletion. Empty if nothing is needed, and if deleting everything would not be enough. */
  readonly victims: readonly Victim[]
  readonly freedBytes: number
  /** Limits still exceeded after every permitted eviction; empty = the request fits. */
  readonly shortfalls: readonly Shortfall[]
  /**
   * Maximum that could be freed: the bytes of every idle unlocked copy that this request may take. On a node with shares
   * and many copies, a request that fits as it is counts only those that were read.
   */
  readonly evictableBytes: number
  readonly evictableCopies: number
  /** Whether copies that were not read could change the plan. */
  readonly isProvisional?: boolean
}

/** The copies of a node that a plan knows only as sums: to know those that go first is usually enough. */
export interface UnreadCopies {
  /** None of them is being staged or evicted. */
  readonly sums: readonly CopySum[]
  /**
   * Lower bound of when the evictable ones were last used, Unix epoch, ms. Infinity: none is evictable. Above 0, each is
   * the only copy of its dataset on the node.
   */
  readonly usedSinceMs: number
}

/** All inputs of the decision. */
export interface EvictionInput {
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** The copies of the node, including `evicting` ones: their bytes are on disk until they are gone. */
  readonly copies: readonly CopyUse[]
  /** The copies of the node that `copies` leaves out; undefined: none. */
  readonly unread?: UnreadCopies | undefined
  readonly request: SpaceRequest
  /** The copy that the request is for: neither charged nor a victim. */
  readonly requestCopyId?: string
  /** The parties that make the request. Absent: those of the copy that it is for; without one, none (cleanup). */
  readonly parties?: readonly string[] | undefined
  /** Whether the request is for a job that has not begun: it takes free and borrowed space, and nothing guaranteed. */
  readonly isPrefetch?: boolean | undefined
  /** `part`: evict any copy that helps, even if a limit stays exceeded (cleanup). Default `all`: enough or nothing. */
  readonly accept?: 'all' | 'part'
}

/**
 * Chooses copies to delete so that the request fits the policy; enough or nothing.
 *
 * Never chooses a copy that is leased, locked, being staged, or without a remote source. Abandoned stagings come first,
 * then versions that a newer ready one replaces, then the least recently used. Equal ages fall back to name, then
 * version, so that every node plans alike. Skips a copy whose deletion would bring no exceeded limit nearer. If the
 * policy has shares, `takeByShare` decides whose copies go.
 */
export function planEviction(input: EvictionInput): EvictionPlan {
  const { policy, request, unread } = input
  const others = input.copies.filter((copy) => copy.copyId !== input.requestCopyId)
  const sums = [...sumUpCopies(others), ...(unread?.sums ?? [])]
  const load = measureLoad(sums)
  const held = { sums, load }
  const candidates = findCandidates(others, unread?.usedSinceMs)
  const asked = { ...input, parties: input.parties ?? findPartiesOf(input) }
  const evictable = policy.shares
    ? sumCopies(takeByShare(asked, held, { candidates, take: () => true }))
    : sumEvictable(sums)
  const victims: Victim[] = []
  let present = { load, disk: input.disk }
  let shortfalls = findShortfalls({ policy, ...present, request })
  const isShort = shortfalls.length > 0
  const take = (copy: Copy): boolean => {
    const after = removeCopy(present.load, present.disk, copy)
    const remaining = findShortfalls({ policy, ...after, request })
    if (sumMissing(remaining, shortfalls) >= shortfalls.length) return false
    present = after
    shortfalls = remaining
    return true
  }
  if (isShort) {
    for (const victim of takeByShare(asked, held, { candidates, take })) {
      victims.push(victim)
      if (shortfalls.length === 0) break
    }
  }
  const chosen = shortfalls.length === 0 || input.accept === 'part' ? victims : []
  return {
    victims: chosen,
    freedBytes: sumCopies(chosen).bytes,
    shortfalls,
    evictableBytes: evictable.bytes,
    evictableCopies: evictable.copies,
    // With shares, which copies go first depends on everything that each share holds.
    isProvisional: unread !== undefined && isShort && (shortfalls.length > 0 || policy.shares !== undefined),
  }
}

/** Undefined: the request is for no copy. */
function findPartiesOf({ copies, requestCopyId }: EvictionInput): readonly string[] | undefined {
  if (requestCopyId === undefined) return undefined
  return copies.find(({ copyId }) => copyId === requestCopyId)?.parties ?? []
}

function sumCopies(victims: Iterable<Victim>): { readonly bytes: number; readonly copies: number } {
  let [bytes, copies] = [0, 0]
  for (const { copy } of victims) {
    bytes += copy.chargedBytes
    copies += 1
  }
  return { bytes, copies }
}

function sumEvictable(sums: readonly CopySum[]): ReturnType<typeof sumCopies> {
  const idle = sums.filter(mayGo)
  return {
    bytes: idle.reduce((total, { chargedBytes }) => total + chargedBytes, 0),
    copies: idle.reduce((total, { copies }) => total + copies, 0),
  }
}

/** The load of the copies, according to the record. Reserved copies, not yet listed, take nothing. */
export function measureLoad(sums: readonly CopySum[]): CacheLoad {
  const charged = sums.filter(({ state }) => state !== 'reserved')
  const staging = charged.filter(({ state }) => state === 'staging')
  return {
    datasets: charged.reduce((total, { copies }) => total + copies, 0),
    bytes: charged.reduce((total, { chargedBytes }) => total + chargedBytes, 0),
    outstandingBytes: staging.reduce((total, { unwrittenBytes }) => total + unwrittenBytes, 0),
    outstandingInodes: staging.reduce((total, { chargedInodes }) => total + chargedInodes, 0),
  }
}

/** Whether policy may now delete the copy: idle, unlocked, and available from a source to refetch. */
export function isEvictable(copy: CopyUse): boolean {
  return mayGo(standingOf(copy))
}

/** `isEvictable` for copies in a sum. */
export function mayGo({ state, isLocked, hasSource, isUsed, isBeingStaged }: CopyStanding): boolean {
  return !isUsed && !isBeingStaged && !isLocked && hasSource && (state === 'ready' || state === 'staging')
}

/**
 * Whether a begun staging has no stager. Leases of its users do not count: they have no path to read yet, and a user
 * still waiting starts it again.
 */
export function isAbandoned(copy: CopyUse): boolean {
  return (copy.state === 'reserved' || copy.state === 'staging') && !copy.isBeingStaged && copy.lock === null
}

/** The plan that deletes exactly these copies. The caller has checked `isEvictable` or `isAbandoned` for each. */
export function planToDelete(copies: readonly CopyUse[], reason: string): EvictionPlan {
  const bytes = copies.reduce((sum, copy) => sum + copy.chargedBytes, 0)
  return {
    victims: copies.map((copy) => ({ copy, reason })),
    freedBytes: bytes,
    shortfalls: [],
    evictableBytes: bytes,
    evictableCopies: copies.length,
  }
}

/**
 * The plan that frees this many bytes: uses the policy's own order, as if the disk had no free space and no limit. Of
 * an abandoned staging, only the written bytes count: the rest is on no disk, and needs no space.
 */
export function planToFree(copies: readonly CopyUse[], bytes: number, unread?: UnreadCopies): EvictionPlan {
  const { POSITIVE_INFINITY } = Number
  return planEviction({
    policy: {},
    disk: { capacityBytes: POSITIVE_INFINITY, freeBytes: 0, inodesTotal: 0, inodesFree: 0 },
    copies: copies.filter(isEvictable).map((copy) => ({
      ...copy,
      chargedBytes:
        copy.state === 'staging' ? Math.min(copy.writtenBytes, copy.chargedBytes) : copy.chargedBytes,
    })),
    unread: unread && { ...unread, sums: unread.sums.filter(mayGo) },
    request: { datasets: 0, bytes, inodes: 0 },
  })
}

/** The last rank in the order of deletion: within it, the least recently used copy goes first. */
const LONGEST_IDLE = 2
const REASONS = ['abandoned staging', 'replaced by a newer version', 'least recently used'] as const

/** Whether a candidate comes after all that go for another reason. */
export function isLongestIdle({ reason }: Victim): boolean {
  return reason === REASONS[LONGEST_IDLE]
}

/** Orders copies that go for one reason: negative, `a` goes before `b`. Queries of the record have the same order. */
export function compareIdle(a: Copy, b: Copy): number {
  return (
    a.lastUsedAtMs - b.lastUsedAtMs ||
    compareText(a.dataset, b.dataset) ||
    compareText(a.version ?? '', b.version ?? '') ||
    a.createdAtMs - b.createdAtMs ||
    compareText(a.copyId, b.copyId)
  )
}

/**
 * Every copy that may be deleted, in the order of deletion. The least recently used ones are only those last used before
 * `beforeMs` (Unix epoch, ms).
 */
export function findCandidates(
  copies: readonly CopyUse[],
  beforeMs = Number.POSITIVE_INFINITY,
): readonly Victim[] {
  const newest = new Map<string, CopyUse>()
  for (const copy of copies) {
    if (copy.state !== 'ready') continue
    if ((newest.get(copy.dataset)?.readyAtMs ?? -1) < (copy.readyAtMs ?? 0)) newest.set(copy.dataset, copy)
  }
  const rank = (copy: CopyUse) => {
    if (copy.state === 'staging') return 0
    const last = newest.get(copy.dataset)
    const isOlder = (copy.readyAtMs ?? 0) < (last?.readyAtMs ?? 0)
    return isOlder && copy.version !== last?.version ? 1 : LONGEST_IDLE // a stripe and a whole copy do not replace each other
  }
  return copies
    .filter(isEvictable)
    .map((copy) => ({ copy, rank: rank(copy) }))
    .filter(({ copy, rank }) => rank < LONGEST_IDLE || copy.lastUsedAtMs < beforeMs)
    .sort((a, b) => a.rank - b.rank || compareIdle(a.copy, b.copy))
    .map(({ copy, rank }) => ({ copy, reason: REASONS[rank]! }))
}

/** Sums each remaining shortfall relative to its original; equals the count if nothing came nearer. */
function sumMissing(remaining: readonly Shortfall[], before: readonly Shortfall[]): number {
  return before.reduce((sum, shortfall) => {
    const now = remaining.find((candidate) => candidate.limit === shortfall.limit)
    return sum + (now ? now.missing / shortfall.missing : 0)
  }, 0)
}

/** The disk after the files of a copy are gone. */
export function freeDisk(disk: DiskUsage, copy: Copy): DiskUsage {
  const onDiskBytes = copy.state === 'staging' ? copy.writtenBytes : copy.chargedBytes
  return {
    ...disk,
    freeBytes: Math.min(disk.capacityBytes, disk.freeBytes + onDiskBytes),
    inodesFree: disk.inodesFree + (copy.state === 'ready' ? copy.chargedInodes : 0),
  }
}

function removeCopy(load: CacheLoad, disk: DiskUsage, copy: Copy): { load: CacheLoad; disk: DiskUsage } {
  const outstandingBytes = copy.state === 'staging' ? Math.max(0, copy.chargedBytes - copy.writtenBytes) : 0
  return {
    load: {
      datasets: load.datasets - 1,
      bytes: load.bytes - copy.chargedBytes,
      outstandingBytes: load.outstandingBytes - outstandingBytes,
      outstandingInodes: load.outstandingInodes - (copy.state === 'staging' ? copy.chargedInodes : 0),
    },
    disk: freeDisk(disk, copy),
  }
}
