import { isEvictable, planToDelete } from '../../policy/plan-eviction.js'
import type { Cache } from '../cache.js'
import { finishEvictions } from '../eviction/finish-evictions.js'
import type { JoinedRequest } from '../leases/take-ready-copy.js'
import { interrupted } from './interrupted.js'
import { joinStaging } from './join-staging.js'
import type { PrepareProgress } from './prepare-dataset.js'
import { stageDataset } from './stage-dataset.js'
import { waitForStager } from './wait-for-stager.js'

/** Room for a copy on this node, held by a lease; the copy is still to be staged, or already ready. */
export interface Reservation {
  readonly copyId: string
  readonly leaseId: string
  readonly version: string
  readonly isReady: boolean
  /** Whether this call made it; an earlier one may hold files of an earlier attempt. */
  readonly isNew: boolean
}

/**
 * Lists a source and reserves the space for its copy without fetching a byte; `prepareDataset` continues from there.
 * This way several nodes can all be asked before any of them starts. Rejects as `prepareDataset` does.
 */
export async function reserveDataset(
  cache: Cache,
  request: JoinedRequest & { readonly isRefresh: boolean; readonly isRelisted: boolean },
  options: { readonly signal: AbortSignal; readonly onProgress?: (progress: PrepareProgress) => void },
): Promise<Reservation> {
  const { isRelisted, version } = request
  for (;;) {
    if (options.signal.aborted) throw interrupted(options.signal)
    const joined = await joinStaging(cache, request, { ...options, isRefresh: request.isRefresh })
    if (joined.outcome === 'again') continue
    const { copy, leaseId } = joined
    if (joined.outcome === 'ready') {
      return { copyId: copy.copyId, leaseId, version: copy.version!, isReady: true, isNew: false }
    }
    if (joined.outcome === 'wait') {
      if (copy.state === 'staging') {
        return { copyId: copy.copyId, leaseId, version: copy.version!, isReady: false, isNew: false }
      }
      await waitForStager(cache, joined, options)
      continue
    }
    const staged = await stageDataset(cache, joined, {
      ...options,
      version,
      isRelisted,
      isReservation: true,
      dataset: request.dataset,
      isRefresh: request.isRefresh,
    })
    if (staged.outcome === 'lost') continue
    if (staged.outcome === 'reserved') {
      const isNew = !joined.isResumed
      return { copyId: copy.copyId, leaseId, version: staged.version, isReady: false, isNew }
    }
    // The listed version turned out to be ready here: the lease is now on that copy.
    const { stripe, lease, dataset } = request
    const use = await cache.record.leaseReady(
      { dataset: dataset.name, node: cache.node, lease, stripe },
      cache.nowMs(),
    )
    if (use) {
      return {
        copyId: use.copy.copyId,
        leaseId: use.leaseId,
        version: use.copy.version!,
        isReady: true,
        isNew: false,
      }
    }
  }
}

/** Cancels a reservation with nothing fetched; its room is free at once, unless a stager is using it now. */
export async function cancelReservation(cache: Cache, copyId: string): Promise<void> {
  const plan = await cache.record.beginEviction(
    { node: cache.node, only: { copyId }, task: null },
    (copies) => {
      const found = copies.filter(({ state }) => state === 'staging')
      return planToDelete(found.filter(isEvictable), 'another node had no room for its stripe')
    },
    cache.nowMs(),
  )
  await finishEvictions(
    cache,
    plan.victims.map(({ copy }) => copy),
  )
}
