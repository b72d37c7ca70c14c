import { DscError, FAILURES, type FailureCode } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { type Dataset, parseSourceUrl } from '../model/dataset.js'
import { formatHolder, type Lease, type LeaseRequest } from '../model/lease.js'
import { checkProcess, identifyProcess } from '../platform/processes.js'
import type { Joined } from '../records/record-store.js'
import type { Cache } from './cache.js'
import { stagingDirectoryOf } from './cache-layout.js'
import type { Downloaded } from './download-files.js'
import { STAGE_LEASE_MS } from './keep-stage-lease.js'
import type { Origins } from './source.js'
import { interrupted, type StageOptions, type StageProgress, stageDataset } from './stage-dataset.js'
import { isOfDefinition, takeReadyCopy } from './take-ready-copy.js'

export interface PrepareRequest {
  readonly dataset: Dataset
  readonly lease: LeaseRequest
  /** Look for a new version even if a copy is ready. */
  readonly isRefresh: boolean
  /** False: fail with STAGING_ELSEWHERE instead of waiting for another stager. */
  readonly mayWait: boolean
  /** Nodes that stage the same dataset at this time, this one among them: each reads a share from the store. */
  readonly sharedWith?: readonly string[]
}

export type PrepareProgress =
  | StageProgress
  | {
      readonly step: 'waiting'
      readonly stager: string
      readonly writtenBytes: number
      readonly totalBytes: number
    }

/** A copy that stays as long as the lease does. */
export interface Prepared {
  readonly copy: Copy
  readonly leaseId: string
  /** Whether this call brought the copy here, instead of finding it or waiting for it. */
  readonly isStagedHere: boolean
  readonly downloaded?: Downloaded & { readonly origins?: Origins }
}

/**
 * Seed steps 2 to 6: gives the task a ready copy of the dataset on this node. Any number of callers cause one
 * download; the others wait for it and take over if its stager dies.
 */
export async function prepareDataset(
  cache: Cache,
  request: PrepareRequest,
  options: Omit<StageOptions, 'onProgress'> & { readonly onProgress?: (progress: PrepareProgress) => void },
): Promise<Prepared> {
  const { lease } = request
  let { isRefresh } = request
  let hasWaited = false
  const beganMs = performance.now()
  const waitedMs = () => (hasWaited ? Math.round(performance.now() - beganMs) : 0)
  for (;;) {
    if (options.signal.aborted) throw interrupted(options.signal)
    const joined = await join(cache, request, isRefresh)
    switch (joined.outcome) {
      case 'ready':
        await noteUse(cache, joined.copy, lease.task, waitedMs())
        return { copy: joined.copy, leaseId: joined.leaseId, isStagedHere: false }
      case 'again':
        break
      case 'stage': {
        const staged = await stageDataset(cache, request.dataset, joined, {
          ...options,
          isRefresh,
          sharedWith: request.sharedWith ?? [],
        })
        if (staged.outcome === 'lost') break
        const { copy, isNew, downloaded } = staged
        const leaseId = isNew ? joined.leaseId : await leaseAgain(cache, request, copy)
        if (leaseId === undefined) break
        hasWaited = true
        await noteUse(cache, copy, lease.task, waitedMs())
        return { copy, leaseId, isStagedHere: isNew, ...(downloaded ? { downloaded } : {}) }
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
        // What a stager found is as fresh as what this call would find; one that died has found nothing.
        if ((await waitForStager(cache, joined, options)) === 'ended') isRefresh = false
    }
  }
}

/** `again`: what was found was of no use, look once more. */
/** On a cluster every use leaves a line in the history, of which agents make their metrics. */
async function noteUse(cache: Cache, copy: Copy, task: string, waitedMs: number): Promise<void> {
  if (!cache.openStagingSource) return
  const { copyId, dataset, node } = copy
  const reason = waitedMs === 0 ? 'it was ready' : `ready after ${(waitedMs / 1000).toFixed(1)} s`
  const detail = { isHit: waitedMs === 0, waitedMs }
  await cache.record.addEvent({
    atMs: cache.nowMs(),
    kind: 'leased',
    ...{ node, dataset, copyId, task, reason, detail },
  })
}

async function join(
  cache: Cache,
  request: PrepareRequest,
  isRefresh: boolean,
): Promise<Joined | { readonly outcome: 'again' }> {
  const { dataset, lease } = request
  const found = isRefresh ? undefined : await takeReadyCopy(cache, dataset, lease)
  if (found?.outcome === 'ready') return found
  if (found?.outcome === 'gone') return { outcome: 'again' }
  const nowMs = cache.nowMs()
  const stager = identifyProcess(process.pid)
  return cache.record.joinStaging(
    {
      dataset: dataset.name,
      node: cache.node,
      lease,
      stager: { task: lease.task, holder: stager ?? { kind: 'ttl' }, expiresAtMs: nowMs + STAGE_LEASE_MS },
      source: dataset,
      origin: parseSourceUrl(dataset.source).scheme,
      directoryOf: (copyId) => stagingDirectoryOf(cache.root, copyId),
      isRefresh,
      accept: (copy) => isOfDefinition(copy, dataset),
    },
    nowMs,
  )
}

/** The refresh found nothing new: the record moved our lease to the copy that was ready, which has its own id there. */
async function leaseAgain(cache: Cache, request: PrepareRequest, copy: Copy): Promise<string | undefined> {
  const use = await cache.record.leaseReady(
    { dataset: copy.dataset, node: cache.node, lease: request.lease },
    cache.nowMs(),
  )
  return use?.leaseId
}

/** How often the record is asked: soon at first, because many stagings are short. */
const FIRST_WAIT_MS = 20
const LONGEST_WAIT_MS = 500
/** Where the record tells of changes, it is asked only for progress, and lest a message was lost. */
const LONGEST_QUIET_WAIT_MS = 2000

type Waiting = Extract<Joined, { outcome: 'wait' }>

/**
 * Waits until the staging ended in any way, or was left by its stager. Rejects with the stager's own failure, so
 * that twenty callers do not fail one after the other.
 */
async function waitForStager(
  cache: Cache,
  waiting: Waiting,
  options: { readonly signal: AbortSignal; readonly onProgress?: (progress: PrepareProgress) => void },
): Promise<'ended' | 'left'> {
  const { copyId } = waiting.copy
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 1.5)) {
    const [copy] = await cache.record.listCopies({ copyId }, cache.nowMs())
    const failure = await findStagersFailure(cache, copyId, waiting.stageLease)
    if (failure) {
      await cache.record.releaseUses({ leaseId: waiting.leaseId }, cache.nowMs())
      throw failure
    }
    if (!copy || copy.state === 'ready') return 'ended'
    if (copy.state === 'evicting' || !copy.isBeingStaged) return 'left'
    if (isProvenDead(waiting.stageLease)) {
      const reason = `its stager, ${formatHolder(waiting.stageLease)}, has ended`
      await cache.record.expireLeases([{ leaseId: waiting.stageLease.leaseId, reason }], cache.nowMs())
      return 'left'
    }
    options.onProgress?.({
      step: 'waiting',
      stager: formatHolder(waiting.stageLease),
      writtenBytes: copy.writtenBytes,
      totalBytes: copy.chargedBytes,
    })
    await cache.record.waitForChange({
      pollMs: waitMs,
      atMostMs: LONGEST_QUIET_WAIT_MS,
      about: waiting.copy,
      signal: options.signal,
    })
    if (options.signal.aborted) {
      await cache.record.releaseUses({ leaseId: waiting.leaseId }, cache.nowMs())
      throw interrupted(options.signal)
    }
  }
}

async function findStagersFailure(
  cache: Cache,
  copyId: string,
  stageLease: Lease,
): Promise<DscError | undefined> {
  const kinds = ['staging-failed', 'refused'] as const
  const [event] = await cache.record.listEvents({ copyId, kinds, limit: 1 })
  if (event?.detail.stageLeaseId !== stageLease.leaseId) return undefined
  const { code, hint } = event.detail
  if (typeof code !== 'string' || !isFailureCode(code)) return undefined
  return new DscError(code, event.reason, { hint: typeof hint === 'string' ? hint : undefined })
}

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(FAILURES, code)
}

function isProvenDead(lease: Lease): boolean {
  return lease.holder.kind === 'process' && checkProcess(lease.holder) === 'dead'
}
