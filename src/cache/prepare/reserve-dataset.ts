import { isEvictable, planToDelete } from '../../policy/plan-eviction.js'
import type { Cache } from '../cache.js'
import { finishEvictions } from '../eviction/finish-evictions.js'
import { interrupted } from './interrupted.js'
import { type JoinedRequest, joinStaging } from './join-staging.js'
import type { PrepareProgress } from './prepare-dataset.js'
import { stageDataset } from './stage-dataset.js'
import { waitForStager } from './wait-for-stager.js'

/** Room for a copy on this node, kept by a lease: for one that is to be staged, or one that is ready. */
export interface Reservation {
  readonly copyId: string
  readonly leaseId: string
  readonly version: string
  readonly isReady: boolean
  /** Whether this call made it; one that was there may hold files of an earlier attempt. */
  readonly isNew: boolean
}

/**
 * Lists a source and reserves what its copy will take, without fetching a byte: `prepareDataset` goes on from there.
 * So several nodes can all be asked before any of them begins. Rejects as `prepareDataset` does.
 */
export async function reserveDataset(
  cache: Cache,
  request: JoinedRequest & { readonly isRefresh: boolean; readonly isRelisted: boolean },
  options: {
    readonly signal: AbortSignal
    readonly onProgress?: (progress: PrepareProgress) => void
  },
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
    // What was to be listed turned out to be here: the lease is on that copy now.
    const { stripe, lease, dataset } = request
    const use = await cache.record.leaseReady(
      { dataset: dataset.name, node: cache.node, lease, ...(stripe && { stripe }) },
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

/** Gives up a reservation for which nothing was fetched: its room is free at once, unless somebody stages it now. */
export async function cancelReservation(cache: Cache, copyId: string): Promise<void> {
  const plan = await cache.record.beginEviction(
    { node: cache.node, task: null },
    (copies) => {
      const found = copies.filter((copy) => copy.copyId === copyId && copy.state === 'staging')
      return planToDelete(found.filter(isEvictable), 'another node had no room for its stripe')
    },
    cache.nowMs(),
  )
  await finishEvictions(
    cache,
    plan.victims.map(({ copy }) => copy),
  )
}
