import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize, formatExactSize } from '../../model/byte-size.js'
import type { CopyUse } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatHolder, isLeaseLive, type Lease } from '../../model/lease.js'
import type { CachePolicy, DiskUsage } from '../../model/policy.js'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type { Limit, Shortfall, SpaceRequest } from '../../policy/quota.js'
import type { ShareStanding } from '../../policy/shares.js'

/** Number of holders named; the rest are counted. */
const NAMED_HOLDERS = 5

/** A copy that is in the way. `isHidden`: only some may read it, and anybody may see the message, as in the history. */
export interface Holder extends CopyUse {
  readonly isHidden?: boolean
}

/**
 * The failure of a request that the policy has no room for: needed, available and evictable space, and the holders of
 * the rest.
 */
export function explainRefusal(refused: {
  readonly dataset: string
  readonly node: string
  readonly request: SpaceRequest
  readonly plan: EvictionPlan
  readonly holders: readonly Holder[]
  readonly shares: readonly ShareStanding[]
  readonly leases: readonly Lease[]
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  readonly nowMs: number
}): DscError {
  const { plan, holders } = refused
  const lines = [
    `no room for ${refused.dataset} on node ${refused.node}: it needs ${formatByteSize(refused.request.bytes)}; ` +
      plan.shortfalls.map(describeShortfall).join('; '),
    `  evictable: ${plan.evictableCopies === 0 ? 'nothing' : `${formatByteSize(plan.evictableBytes)} in ${formatCount(plan.evictableCopies, 'idle copy', 'idle copies')}, which would not be enough`}`,
    ...refused.shares.filter(isWorthNaming).map((standing) => `  share: ${describeShare(standing)}`),
    ...holders
      .slice(0, NAMED_HOLDERS)
      .map((copy) => `  held: ${describeHeld(copy, refused.leases, refused.nowMs)}`),
    ...(holders.length > NAMED_HOLDERS
      ? [`  held: ${holders.length - NAMED_HOLDERS} more (dsc status)`]
      : []),
    '  nothing was deleted',
  ]
  return new DscError('QUOTA_EXCEEDED', lines.join('\n'), {
    hint: chooseHint({ ...refused, shortfalls: plan.shortfalls }),
    facts: {
      limits: plan.shortfalls.map(({ limit }) => limit),
      neededBytes: refused.request.bytes,
      borrowers: refused.shares.filter(({ borrowedBytes }) => borrowedBytes > 0).map(({ party }) => party),
    },
  })
}

/** Leaves out the line for parties without a share if they use nothing. */
function isWorthNaming({ party, usedBytes }: ShareStanding): boolean {
  return party !== null || usedBytes > 0
}

/** `group:vision takes 3 GiB, 1 GiB of it borrowed; 2 GiB (40%) are guaranteed to it`. */
function describeShare(standing: ShareStanding): string {
  const { party, percent, guaranteedBytes, usedBytes, borrowedBytes } = standing
  const used = formatByteSize(usedBytes)
  if (party === null) return `parties without a share take ${used}, all of it borrowed`
  const borrowed = borrowedBytes > 0 ? `, ${formatByteSize(borrowedBytes)} of it borrowed` : ''
  return `${party} takes ${used}${borrowed}; ${formatByteSize(guaranteedBytes)} (${percent}%) are guaranteed to it`
}

/** Short reasons why the policy cannot delete this copy. */
export function describeHeld(copy: Holder, leases: readonly Lease[], nowMs: number): string {
  if (copy.isHidden) return `a dataset with readers ${formatByteSize(copy.chargedBytes)}, in use`
  const name = `${copy.dataset} ${formatByteSize(copy.chargedBytes)}`
  const uses = leases.filter(
    (lease) => lease.copyId === copy.copyId && lease.purpose !== 'stage' && isLeaseLive(lease, nowMs),
  )
  const reasons = [
    ...uses.slice(0, 2).map((lease) => `leased by ${lease.task} (${formatHolder(lease)})`),
    ...(uses.length > 2 ? [`and ${formatCount(uses.length - 2, 'more lease')}`] : []),
    ...(copy.isBeingStaged ? ['being staged'] : []),
    ...(copy.lock ? [`locked by ${copy.lock.by}: ${copy.lock.reason}`] : []),
    ...(copy.source === null ? ['no remote source is known'] : []),
  ]
  return `${name}, ${reasons.join(', ')}`
}

function describeShortfall(shortfall: Shortfall): string {
  const { limit } = shortfall
  if (limit === 'maxDatasets') {
    return `maxDatasets allows ${shortfall.allowed} and ${shortfall.taken} are taken`
  }
  if (limit === 'inodes') {
    return `it needs ${formatCount(shortfall.needed, 'inode')}, and ${shortfall.allowed} are free (${shortfall.taken} reserved)`
  }
  const [allowed, taken, missing] = [shortfall.allowed, shortfall.taken, shortfall.missing].map(
    formatByteSize,
  )
  return limit === 'maxPercent'
    ? `maxPercent allows ${allowed}, copies use ${taken}: ${missing} short`
    : `the disk has ${allowed} free above minFree, ${taken} reserved for other downloads: ${missing} short`
}

/** Hint for when too few bytes can be freed: evict the idle copies, or see what holds the others. */
export function chooseFreeHint(plan: Pick<EvictionPlan, 'evictableBytes' | 'evictableCopies'>): string {
  return plan.evictableCopies > 0
    ? `dsc evict --free ${formatExactSize(plan.evictableBytes)} deletes all that may go`
    : 'dsc status shows which copies there are, and what is leased or locked'
}

/** Facts that a hint is chosen from. */
interface Refused {
  readonly shortfalls: readonly Shortfall[]
  readonly holders: readonly Holder[]
  readonly policy: CachePolicy
  readonly disk: DiskUsage
}

/** Hint after a refusal: one command or setting that can help. */
export function chooseHint(refused: Refused): string {
  const { shortfalls, holders } = refused
  if (shortfalls.every(({ limit, missing }) => missing <= sumHeld(limit, holders))) {
    const shown = holders.filter(({ isHidden }) => !isHidden)
    const locked = shown.find(
      (copy) => copy.lock !== null && copy.source !== null && copy.referenceCount === 0,
    )
    if (locked) return `dsc unlock ${locked.dataset}`
    const leased = shown.find((copy) => copy.referenceCount > 0)
    if (leased) return `dsc leases --dataset ${leased.dataset} (wait for them, or dsc release them)`
  }
  return chooseSetting(refused)
}

/** If the disk itself is full, raising a limit does not help. */
function chooseSetting({ shortfalls, policy, disk }: Refused): string {
  const of = (limit: Limit) => shortfalls.find((shortfall) => shortfall.limit === limit)
  const needed = (of('minFree') ?? of('maxPercent'))?.needed ?? 0
  if (needed > disk.capacityBytes)
    return 'set cache.root to a larger disk, or spread it over several nodes: dsc prepare --stripe'
  if (of('minFree') && needed + (policy.minFreeBytes ?? 0) > disk.capacityBytes)
    return 'lower cache.minFree in dsc.yaml: the disk does not have so much beside it, even empty'
  if (of('minFree') || of('inodes')) return 'free space on the file system of the cache'
  return `raise cache.${shortfalls[0]?.limit ?? 'maxPercent'} in dsc.yaml`
}

/** Space that would be free under a limit if no copy were held. */
function sumHeld(limit: Limit, holders: readonly CopyUse[]): number {
  if (limit === 'maxDatasets') return holders.length
  return holders.reduce((sum, copy) => sum + (limit === 'inodes' ? copy.chargedInodes : copy.chargedBytes), 0)
}
