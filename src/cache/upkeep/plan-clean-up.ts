import type { Copy, CopyUse, Stripe } from '../../model/copy.js'
import { isLeaseLive, type Lease } from '../../model/lease.js'
import type { CachePolicy, DiskUsage } from '../../model/policy.js'
import type { CopySum } from '../../policy/copy-sums.js'
import {
  findCandidates,
  freeDisk,
  isAbandoned,
  measureLoad,
  planEviction,
} from '../../policy/plan-eviction.js'
import { findShortfalls } from '../../policy/quota.js'
import type { FoundDead } from '../leases/find-dead-leases.js'

/** A directory below `copies/`. */
export interface FoundCopyDirectory {
  readonly path: string
  /** Undefined: no readable manifest. */
  readonly manifest:
    | {
        readonly dataset: { readonly name: string }
        readonly listing: { readonly version: string }
        readonly stripe?: Stripe | undefined
        /** Whether all of its objects are there. */
        readonly isComplete: boolean
      }
    | undefined
  /** Time since it was renamed to its present name, in ms. */
  readonly ageMs: number
  /** Processes that have something below it open. */
  readonly users: readonly number[]
}

/** How long after a copy was published a lease that the record lost may still run: the default `--ttl`. */
export const MAX_FORGOTTEN_LEASE_MS = 24 * 3_600_000

/** Everything that a cleanup considers before it decides. */
export interface CleanUpInput {
  /** May leave out datasets that need nothing done, unless the node `isOverPolicy`. */
  readonly copies: readonly CopyUse[]
  readonly leases: readonly Lease[]
  readonly dead: readonly FoundDead[]
  readonly stagingDirectories: readonly string[]
  /** May leave out those that are a copy's `directory`. */
  readonly copyDirectories: readonly FoundCopyDirectory[]
  /** Leftovers of deletions in the trash. */
  readonly trash: readonly string[]
  /** Evicted copies in the trash that no undo needs any more, or whose room is needed. */
  readonly dropped: readonly { readonly path: string; readonly reason: string }[]
  /** Entries that are not as they should be: reported, and left alone. */
  readonly refused: readonly { readonly path: string; readonly reason: string }[]
  /** Ids of ready copies whose directories are not on disk. */
  readonly missingCopyIds: ReadonlySet<string>
  /** Where a copy of this dataset and version would be published. */
  readonly publishedDirectoryOf: (copy: CopyUse) => string | undefined
  /** Prefix of the folders for repairs of this copy. */
  readonly repairPrefixOf: (copy: CopyUse) => string
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  readonly nowMs: number
  /** An abandoned staging younger than this stays, so that its task can resume it; in ms. */
  readonly abandonedAfterMs: number
}

/** One step of a cleanup; a plan lists them in order. */
export type CleanUpAction =
  | { readonly kind: 'expire-lease'; readonly lease: Lease; readonly reason: string }
  | { readonly kind: 'finish-eviction'; readonly copy: Copy; readonly reason: string }
  | { readonly kind: 'empty-trash'; readonly path: string; readonly reason: string }
  | { readonly kind: 'remove-directory'; readonly path: string; readonly reason: string }
  | { readonly kind: 'adopt-directory'; readonly path: string; readonly reason: string }
  | { readonly kind: 'leave'; readonly path: string; readonly reason: string }
  | { readonly kind: 'forget-copy'; readonly copy: Copy; readonly reason: string }
  | { readonly kind: 'evict'; readonly copy: Copy; readonly reason: string }

/**
 * Decides what brings record, disk and policy back together. Never touches leased and locked copies, or stagings under
 * way.
 */
export function planCleanUp(input: CleanUpInput): readonly CleanUpAction[] {
  const ended = findEndedLeases(input)
  const copies = withoutLeases(input, new Set(ended.map(({ lease }) => lease.leaseId)))
  const forgotten = copies.filter((copy) => input.missingCopyIds.has(copy.copyId) && copy.state === 'ready')
  const forgottenIds = new Set(forgotten.map(({ copyId }) => copyId))
  const present = copies.filter((copy) => !forgottenIds.has(copy.copyId))
  return [
    ...input.refused.map((refused) => ({ kind: 'leave' as const, ...refused })),
    ...ended,
    ...present
      .filter((copy) => copy.state === 'evicting')
      .map((copy) => ({ kind: 'finish-eviction' as const, copy, reason: 'its eviction was interrupted' })),
    ...input.trash.map((path) => ({ kind: 'empty-trash' as const, path, reason: 'left in the trash' })),
    ...input.dropped.map((dropped) => ({ kind: 'empty-trash' as const, ...dropped })),
    ...forgotten.map((copy) => ({
      kind: 'forget-copy' as const,
      copy,
      reason: `${copy.directory} is gone from disk`,
    })),
    ...planDirectories(input, copies, findRepairs(input, copies, ended)),
    ...planEvictions(input, present),
  ]
}

function findEndedLeases(input: CleanUpInput) {
  const reasons = new Map(input.dead.map(({ leaseId, reason }) => [leaseId, reason]))
  return input.leases.flatMap((lease) => {
    const reason = isLeaseLive(lease, input.nowMs) ? reasons.get(lease.leaseId) : 'expired'
    return reason === undefined ? [] : [{ kind: 'expire-lease' as const, lease, reason }]
  })
}

/** The copies as they will be once `ended` leases are gone. */
function withoutLeases(input: CleanUpInput, ended: ReadonlySet<string>): readonly CopyUse[] {
  const live = input.leases.filter((lease) => !ended.has(lease.leaseId))
  const references = new Map<string, number>()
  const staged = new Set<string>()
  for (const { copyId, purpose } of live) {
    if (purpose === 'stage') staged.add(copyId)
    else references.set(copyId, (references.get(copyId) ?? 0) + 1)
  }
  return input.copies.map((copy) => {
    const referenceCount = references.get(copy.copyId) ?? 0
    const isBeingStaged = staged.has(copy.copyId)
    const isSame = referenceCount === copy.referenceCount && isBeingStaged === copy.isBeingStaged
    return isSame ? copy : { ...copy, referenceCount, isBeingStaged }
  })
}

/** Prefixes of the folders of running repairs. A repair holds a `transfer` lease on its copy. */
function findRepairs(
  input: CleanUpInput,
  copies: readonly CopyUse[],
  ended: readonly { readonly lease: Lease }[],
): readonly string[] {
  const gone = new Set(ended.map(({ lease }) => lease.leaseId))
  const live = input.leases.filter(({ purpose, leaseId }) => purpose === 'transfer' && !gone.has(leaseId))
  const copyIds = new Set(live.map(({ copyId }) => copyId))
  return copies.filter(({ copyId }) => copyIds.has(copyId)).map(input.repairPrefixOf)
}

function planDirectories(
  input: CleanUpInput,
  copies: readonly CopyUse[],
  repairs: readonly string[],
): readonly CleanUpAction[] {
  if (input.stagingDirectories.length === 0 && input.copyDirectories.length === 0) return []
  const known = new Set<string>()
  for (const copy of copies) {
    known.add(copy.directory)
    known.add(input.publishedDirectoryOf(copy) ?? copy.directory)
  }
  const stray = 'no copy in the record lies there'
  return [
    ...input.stagingDirectories
      .filter((path) => !known.has(path) && !repairs.some((prefix) => path.startsWith(prefix)))
      .map((path) => ({ kind: 'remove-directory' as const, path, reason: stray })),
    ...input.copyDirectories
      .filter(({ path }) => !known.has(path))
      .map((found) => planUnknownCopy(found, copies)),
  ]
}

/**
 * Decides about a directory that the record does not know; the record may have given its path to jobs before it was
 * lost:
 *
 * | it holds                        | a process is in it | younger than a lease | it is     |
 * |---------------------------------|--------------------|----------------------|-----------|
 * | a copy that the record lacks    | –                  | –                    | adopted   |
 * | one that it has elsewhere       | no                 | no                   | removed   |
 * | no readable manifest            | no                 | no                   | removed   |
 * | half a copy, never given out    | no                 | –                    | removed   |
 * | anything else                   | –                  | –                    | left      |
 */
function planUnknownCopy(found: FoundCopyDirectory, copies: readonly CopyUse[]): CleanUpAction {
  const { path, manifest, users, ageMs } = found
  const same = manifest?.isComplete ? copies.find((copy) => isSameCopy(copy, manifest)) : undefined
  if (manifest?.isComplete && same === undefined) {
    return { kind: 'adopt-directory', path, reason: 'a complete copy that the record does not know' }
  }
  const what = same
    ? `the record has the same version in ${same.directory}`
    : `no copy in the record lies there, and ${manifest ? 'it is not complete' : 'its manifest cannot be read'}`
  if (users.length > 0) return { kind: 'leave', path, reason: `${what}, but process ${users[0]} is in it` }
  const wasNeverReady = manifest !== undefined && !manifest.isComplete
  if (wasNeverReady || ageMs >= MAX_FORGOTTEN_LEASE_MS)
    return { kind: 'remove-directory', path, reason: what }
  return { kind: 'leave', path, reason: `${what}, but a job may have been given its path in the last 24 h` }
}

function isSameCopy(copy: CopyUse, manifest: NonNullable<FoundCopyDirectory['manifest']>): boolean {
  const stripeOf = (stripe: Stripe | undefined) => JSON.stringify([stripe?.index, stripe?.nodes.length])
  return (
    copy.state === 'ready' &&
    copy.dataset === manifest.dataset.name &&
    copy.version === manifest.listing.version &&
    stripeOf(copy.stripe) === stripeOf(manifest.stripe)
  )
}

/** Everything deleted anyway makes room too: interrupted evictions, replaced versions, abandoned stagings. */
function planEvictions(input: CleanUpInput, present: readonly CopyUse[]): readonly CleanUpAction[] {
  const copies = present.filter(({ state }) => state !== 'evicting')
  const isOldEnough = (copy: Copy) => input.nowMs - copy.lastUsedAtMs >= input.abandonedAfterMs
  const outdated = findCandidates(copies).filter(({ reason }) => reason === 'replaced by a newer version')
  const abandoned = copies.filter((copy) => isAbandoned(copy) && isOldEnough(copy))
  const first = [
    ...outdated,
    ...abandoned.map((copy) => ({
      copy,
      reason: `abandoned ${copy.state === 'staging' ? 'staging' : 'listing'}`,
    })),
  ]
  const chosen = new Set(first.map(({ copy }) => copy.copyId))
  const going = [...present.filter(({ state }) => state === 'evicting'), ...first.map(({ copy }) => copy)]
  const { victims } = planEviction({
    policy: lowWaterPolicy(input.policy),
    disk: going.reduce(freeDisk, input.disk),
    copies: copies.filter((copy) => !chosen.has(copy.copyId)),
    request: { datasets: 0, bytes: 0, inodes: 0 },
    accept: 'part',
  })
  return [
    ...first.map(({ copy, reason }) => ({ kind: 'evict' as const, copy, reason })),
    ...victims.map(({ copy, reason }) => ({
      kind: 'evict' as const,
      copy,
      reason: `over the policy or the low-water mark: ${reason}`,
    })),
  ]
}

/** Whether copies take more than a cleanup leaves. Fewer copies never take more. */
export function isOverPolicy(
  { policy, disk }: Pick<CleanUpInput, 'policy' | 'disk'>,
  sums: readonly CopySum[],
): boolean {
  const request = { datasets: 0, bytes: 0, inodes: 0 }
  return findShortfalls({ policy: lowWaterPolicy(policy), disk, load: measureLoad(sums), request }).length > 0
}

/** The policy that a cleanup aims at: a low-water mark replaces a higher `maxPercent`. */
function lowWaterPolicy(policy: CachePolicy): CachePolicy {
  if (policy.lowWaterPercent === undefined) return policy
  return { ...policy, maxPercent: Math.min(policy.lowWaterPercent, policy.maxPercent ?? 100) }
}
