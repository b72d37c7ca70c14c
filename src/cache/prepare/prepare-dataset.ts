import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { formatHolder } from '../../model/lease.js'
import type { UseWait } from '../../model/use-wait.js'
import type { Origins } from '../../sources/source.js'
import type { Cache } from '../cache.js'
import type { Downloaded } from '../download/download-files.js'
import { addUse } from '../leases/add-use.js'
import type { JoinedRequest } from '../leases/take-ready-copy.js'
import type { HealProgress } from '../upkeep/heal-copy.js'
import { interrupted } from './interrupted.js'
import { joinStaging } from './join-staging.js'
import { stageDataset } from './stage-dataset.js'
import type { Admit, StageOptions, StageProgress } from './staging.js'
import { type WaitProgress, waitForStager } from './wait-for-stager.js'

/** The dataset to make ready on this node, for which task, and with which means. */
export interface PrepareRequest extends JoinedRequest {
  /** Look for a new version even if a copy is ready. */
  readonly isRefresh: boolean
  /** False: fail with STAGING_ELSEWHERE instead of waiting for another stager. */
  readonly mayWait: boolean
  /** Nodes that stage the same dataset at this time, including this one: each reads its part from the store. */
  readonly sharedWith?: readonly string[]
  /** For a job that has not started yet: as in `planEviction`. */
  readonly isPrefetch?: boolean | undefined
  readonly admit?: Admit | undefined
  /** As in `StageOptions`. */
  readonly asked?: Dataset | undefined
}

/** Progress of our own staging, or of the wait for another stager. */
export type PrepareProgress = StageProgress | WaitProgress | HealProgress

/** A copy that stays as long as the lease lasts. */
export interface Prepared {
  readonly copy: Copy
  readonly leaseId: string
  /** Whether this call staged the copy, instead of finding it or waiting for it. */
  readonly isStagedHere: boolean
  readonly downloaded?: (Downloaded & { readonly origins?: Origins | undefined }) | undefined
}

/**
 * Seed steps 2 to 6: gives the task a ready copy of the dataset on this node. Any number of callers cause one download;
 * the others wait for it, and one takes over if its stager dies.
 */
export async function prepareDataset(
  cache: Cache,
  request: PrepareRequest,
  options: Omit<StageOptions, 'dataset' | 'onProgress' | 'isReadWhileComing'> & {
    readonly onProgress?: (progress: PrepareProgress) => void
    /** As in `NodeApi`. */
    readonly firstRead?: Promise<number> | undefined
  },
): Promise<Prepared> {
  const { lease } = request
  const { firstRead } = options
  let { isRefresh } = request
  let hasWaited = false
  let readMs: number | undefined
  let joinedAs: string | undefined
  const noteRead = async () => {
    if (readMs === undefined || joinedAs === undefined) return
    await cache.record.noteReading(joinedAs, cache.nowMs()).catch(() => {}) // only a status would tell
  }
  void firstRead?.then((ms) => {
    readMs = ms
    return noteRead()
  })
  const beganMs = performance.now()
  const wait = (): UseWait => ({ readyMs: hasWaited ? Math.round(performance.now() - beganMs) : 0, readMs })
  for (;;) {
    if (options.signal.aborted) throw interrupted(options.signal)
    const joined = await joinStaging(cache, request, { ...options, isRefresh })
    if (joined.outcome === 'stage' || joined.outcome === 'wait') {
      joinedAs = joined.leaseId
      await noteRead()
    }
    switch (joined.outcome) {
      case 'ready':
        await addUse(cache, { copy: joined.copy, lease, wait: wait() })
        return { copy: joined.copy, leaseId: joined.leaseId, isStagedHere: false }
      case 'again':
        break
      case 'stage': {
        const staged = await stageDataset(cache, joined, {
          ...options,
          dataset: request.dataset,
          asked: request.asked,
          isRefresh,
          isPrefetch: request.isPrefetch,
          isReadWhileComing: firstRead !== undefined,
          admit: request.admit,
          version: request.version,
          sharedWith: request.sharedWith ?? [],
        })
        if (staged.outcome !== 'ready') break
        const { copy, isNew, downloaded } = staged
        const leaseId = isNew ? joined.leaseId : await leaseAgain(cache, request, copy)
        if (leaseId === undefined) break
        hasWaited = true
        await addUse(cache, { copy, lease, wait: wait() })
        return { copy, leaseId, isStagedHere: isNew, downloaded }
      }
      case 'wait':
        if (!request.mayWait) {
          await cache.record.releaseUses({ leaseId: joined.leaseId }, cache.nowMs())
          throw new DscError(
            'STAGING_ELSEWHERE',
            `${request.dataset.name} is being staged by ${formatHolder(joined.stageLease)} (task ${joined.stageLease.task})`,
            { hint: `dsc prepare ${request.dataset.name} without --no-wait waits for it` },
          )
        }
        hasWaited = true
        // A finished stager's listing is as fresh as ours would be; a dead stager's does not count.
        if ((await waitForStager(cache, joined, options)) === 'ended') isRefresh = false
    }
  }
}

/** The refresh found nothing new: the record moved our lease to the ready copy, where it has another id. */
async function leaseAgain(cache: Cache, request: JoinedRequest, copy: Copy): Promise<string | undefined> {
  const { lease, stripe } = request
  const use = await cache.record.leaseReady(
    { dataset: copy.dataset, node: cache.node, lease, stripe },
    cache.nowMs(),
  )
  return use?.leaseId
}
