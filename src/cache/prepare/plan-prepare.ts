import type { CopyUse } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { isLeaseLive, type Lease } from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'
import { planAdmission } from '../../policy/plan-admission.js'
import type { Shortfall } from '../../policy/quota.js'
import type { Cache } from '../cache.js'
import { listElsewhere } from '../download/list-elsewhere.js'
import { describeHeld } from '../eviction/explain-refusal.js'
import { hideGuarded } from '../eviction/hide-guarded.js'
import { measureRoom } from '../kept-copies.js'
import { findDeadLeases } from '../leases/find-dead-leases.js'
import type { PreparePlanAnswer } from './prepared-answer.js'

/** The outcome of a `prepare` now, worked out without doing anything. */
export interface PreparePlan extends Readonly<Omit<PreparePlanAnswer, 'dsc' | 'shortfalls'>> {
  readonly shortfalls: readonly Shortfall[]
}

/** Plans the use of a copy that is ready, without asking the source; undefined if no copy is ready. */
export async function planReady(cache: Cache, dataset: string): Promise<PreparePlan | undefined> {
  const copies = await cache.record.listCopies({ node: cache.node, dataset }, cache.nowMs())
  const ready = findReady(copies)
  return ready && describeExisting(ready, 'ready')
}

function findReady(copies: readonly CopyUse[]): CopyUse | undefined {
  const whole = copies.filter(({ state, stripe }) => state === 'ready' && !stripe)
  return whole.toSorted((a, b) => b.readyAtMs! - a.readyAtMs!)[0]
}

/** Lists the source and asks the policy. Changes nothing in the record or the cache. */
export async function planPrepare(
  cache: Cache,
  dataset: Dataset,
  options: {
    readonly isRefresh: boolean
    readonly isPrefetch?: boolean | undefined
    /** The parties it would be for. */
    readonly parties?: readonly string[] | undefined
    readonly signal: AbortSignal
  },
): Promise<PreparePlan> {
  const nowMs = cache.nowMs()
  const leases = await cache.record.listLeases({ node: cache.node })
  const copies = countLiveLeases(await cache.record.listCopies({ node: cache.node }, nowMs), leases, nowMs)
  const own = copies.filter((copy) => copy.dataset === dataset.name && !copy.stripe)
  const ready = findReady(own)
  if (ready && !options.isRefresh) return describeExisting(ready, 'ready')
  const staging = own.find((copy) => copy.isBeingStaged)
  if (staging) return describeExisting(staging, 'wait')
  const listing = await listElsewhere(cache, dataset, options.signal)
  const same = own.find(({ state, version }) => state === 'ready' && version === listing.version)
  if (same) return describeExisting(same, 'ready')
  const admission = planAdmission({
    policy: cache.policy,
    disk: await measureRoom(cache),
    copies: copies.filter(({ state }) => state !== 'evicting'),
    request: { datasets: 1, bytes: listing.neededBytes, inodes: listing.neededInodes },
    requestCopyId: own.find(({ state }) => state === 'staging')?.copyId ?? '',
    parties: options.parties ?? [],
    isPrefetch: options.isPrefetch,
  })
  const plan = admission.outcome === 'wait' ? undefined : admission.plan
  const victims = plan?.victims ?? []
  return {
    dataset: dataset.name,
    node: cache.node,
    outcome: admission.outcome === 'refuse' ? 'refused' : victims.length > 0 ? 'evicts' : 'fits',
    version: listing.version,
    path: null,
    files: listing.files,
    contentBytes: listing.contentBytes,
    diskBytes: listing.neededBytes,
    evictions: victims.map(({ copy, reason }) => ({
      dataset: copy.dataset,
      version: copy.version,
      diskBytes: copy.chargedBytes,
      reason,
    })),
    shortfalls: plan?.shortfalls ?? [],
    evictableBytes: plan?.evictableBytes ?? 0,
    held:
      admission.outcome === 'refuse'
        ? hideGuarded(cache, admission.holders).map((copy) => describeHeld(copy, leases, nowMs))
        : [],
  }
}

/** The copies as they would be once the leases of dead holders expired. */
function countLiveLeases(
  copies: readonly CopyUse[],
  leases: readonly Lease[],
  nowMs: number,
): readonly CopyUse[] {
  const dead = new Set(
    findDeadLeases(leases, { checkProcess, slurmJobs: undefined, nowMs }).map(({ leaseId }) => leaseId),
  )
  const live = leases.filter((lease) => isLeaseLive(lease, nowMs) && !dead.has(lease.leaseId))
  return copies.map((copy) => {
    const own = live.filter(({ copyId }) => copyId === copy.copyId)
    const stagers = own.filter(({ purpose }) => purpose === 'stage').length
    return { ...copy, referenceCount: own.length - stagers, isBeingStaged: stagers > 0 }
  })
}

function describeExisting(copy: CopyUse, outcome: 'ready' | 'wait'): PreparePlan {
  const { dataset, node, version, files } = copy
  return {
    dataset,
    node,
    outcome,
    version,
    path: outcome === 'ready' ? copy.path : null,
    files,
    contentBytes: copy.contentBytes,
    diskBytes: copy.chargedBytes,
    evictions: [],
    shortfalls: [],
    evictableBytes: 0,
    held: [],
  }
}
