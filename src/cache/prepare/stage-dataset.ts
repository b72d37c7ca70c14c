import { existsSync } from 'node:fs'
import { closeAfter, withClosers } from '../../failure/closers.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { createFailureId } from '../../failure/failure-id.js'
import { explainSystemError } from '../../failure/system-failure.js'
import { logPhase } from '../../log/log.js'
import type { Listing } from '../../manifest/listing.js'
import { describeDiskFailure, describeRefusal } from '../../platform/disk-failure.js'
import { nameHeldFolder } from '../../platform/held-folder.js'
import { findDamagedCopies } from '../../sources/damaged-copies.js'
import type { Cache } from '../cache.js'
import { identityFile, stagingDirectoryOf } from '../cache-layout.js'
import { type Downloaded, downloadFiles } from '../download/download-files.js'
import { openNodeShare } from '../download/node-share.js'
import { holdsFetched } from '../download/stale-staging.js'
import { WaitingThreads } from '../download/transfer/waiting-threads.js'
import { discardDirectory } from '../eviction/finish-evictions.js'
import { findReaders } from '../find-readers.js'
import { guardFolder } from '../guard-copy.js'
import { makeHeld } from '../held-cache.js'
import { KeptStageLease } from '../leases/keep-stage-lease.js'
import { leaseReusable } from '../leases/lease-reusable.js'
import { nameInHint } from '../names/name-in-hint.js'
import { saveNode } from '../save-node.js'
import { finishPublished, finishStaging, type Staged } from './finish-staging.js'
import type { StageTurn } from './join-staging.js'
import { listAndAdmit } from './list-and-admit.js'
import type { Admit, OpenStaging, StageOptions, Staging } from './staging.js'

/**
 * Stages a dataset as its one stager: list → admit → download → publish → mark ready in the record. After a kill at any
 * point, the next stager resumes from the state on disk. On failure the use lease is released. The download stays as an
 * abandoned staging if a retry could help; otherwise everything is removed.
 */
export async function stageDataset(cache: Cache, turn: StageTurn, options: StageOptions): Promise<Staged> {
  const share = openNodeShare(cache, turn.stageLeaseId)
  const kept = new KeptStageLease(cache, turn, {
    signal: options.signal,
    beforeRenewal: share.renew,
    together: options.sharedWith?.length ?? 1,
  })
  let isRefused = false
  const admit: Admit = (neededBytes) =>
    (options.admit?.(neededBytes) ?? Promise.resolve()).catch((error: unknown) => {
      isRefused = true
      throw error
    })
  try {
    const staged = await stage(cache, turn, {
      ...options,
      admit,
      signal: kept.signal,
      share,
      reportWritten: (writtenBytes) => kept.report(writtenBytes),
    })
    await kept.stop()
    if (staged.outcome === 'reserved') {
      const { stageLeaseId, copy } = turn
      const ended = { copyId: copy.copyId, stageLeaseId, useLeaseId: null, isForgotten: false }
      await cache.record.endStaging(ended, cache.nowMs())
    }
    return staged
  } catch (error) {
    await kept.stop()
    if (kept.isLost) return { outcome: 'lost' }
    const failure = describeStagingFailure(
      cache,
      nameInHint(error, options.dataset.name),
      turn.copy.directory,
    )
    // An interruption says nothing about the source: the next stager simply resumes.
    const lasting = isDscError(failure) && !options.signal.aborted ? failure : undefined
    throw (await endFailedStaging(cache, turn, { failure: lasting, isForAll: !isRefused })) ?? failure
  }
}

async function stage(cache: Cache, turn: StageTurn, options: Staging): Promise<Staged> {
  const published = await finishPublished(cache, turn)
  if (published) return published
  await saveNode(cache)
  await options.share.waitForOthers(options.signal)
  const held = makeHeld(cache.root, ['staging', turn.copy.copyId])
  const { dataset, isRefresh = false, sharedWith = [], version } = options
  const staged = withClosers(async (closers) => {
    closers.add(() => held.close())
    const readers = findReaders(cache, dataset)
    if (readers) await guardFolder(held.path, readers)
    const staging = await cache.openStagingSource?.(dataset, { isRefresh, sharedWith, version })
    const source = staging ?? (await cache.openSource(dataset))
    closers.add(() => source.close())
    const waitingThreads = new WaitingThreads()
    closers.add(() => waitingThreads.close())
    const describeOrigins = staging && (() => staging.describeOrigins())
    return stageFrom({ source, describeOrigins, held, waitingThreads }, { cache, turn, options })
  })
  return staged.catch((error: unknown) => Promise.reject(nameHeldFolder(error, held)))
}

async function stageFrom(
  open: OpenStaging,
  { cache, turn, options }: { readonly cache: Cache; readonly turn: StageTurn; readonly options: Staging },
): Promise<Staged> {
  const { copy } = turn
  const { dataset, onProgress } = options
  const phase = (name: string) => `${dataset.name}: ${name}`
  const listed = await listAndAdmit({ cache, turn, options: { ...options, ...open } })
  if (listed.outcome !== 'listed') return listed
  const { listing, victims } = listed
  if (victims.length > 0) onProgress?.({ step: 'evicting', victims })
  if (options.isReservation) return { outcome: 'reserved', version: listing.version }
  const downloaded = await logPhase(phase('download'), () =>
    download(cache, { ...options, ...open, listing, replaces: copy.dataset }),
  )
  onProgress?.({ step: 'publishing' })
  const fetched = { ...downloaded, origins: open.describeOrigins?.() }
  return logPhase(phase('syncing to disk'), () =>
    finishStaging(cache, turn, { version: listing.version, fetched }),
  )
}

/** Fetches the listed objects; `replaces` is the dataset whose ready copy provides the unchanged ones. */
async function download(
  cache: Cache,
  options: Staging & OpenStaging & { readonly listing: Listing; readonly replaces: string },
): Promise<Downloaded> {
  const { source, held, listing, share, signal, onProgress } = options
  const reusable = await leaseReusable(cache, {
    dataset: options.replaces,
    version: listing.version,
    source: options.dataset,
    findDamaged: (dataset) => findDamagedCopies(cache.record, dataset),
  })
  const work = downloadFiles({
    source,
    waitingThreads: options.waitingThreads,
    copyDirectory: held.path,
    reusableDirectories: reusable.directories,
    kept: cache.findKept?.(options.dataset),
    hasNodes: options.describeOrigins !== undefined,
    onReused: reusable.release,
    ...cache.transfer,
    requestLimit: share.requestLimit,
    bandwidthLimit: share.bandwidthLimit,
    isReadWhileComing: options.isReadWhileComing,
    signal,
    onProgress: ({ writtenBytes, doneFiles }) => {
      options.reportWritten(writtenBytes)
      const { contentBytes: totalBytes, files: totalFiles } = listing
      onProgress?.({
        step: 'downloading',
        writtenBytes,
        totalBytes,
        doneFiles,
        totalFiles,
        origins: options.describeOrigins?.(),
      })
    },
  })
  return closeAfter(work, reusable.release)
}

/**
 * Turns a file-system failure while filling `directory` into a failure of the cache; returns other errors unchanged.
 */
function describeStagingFailure(cache: Cache, error: unknown, directory: string): unknown {
  const described = describeRefusal(describeDiskFailure(error, directory), directory)
  // The folders of the staging may exist again: writing a file creates missing folders.
  const isThere = existsSync(identityFile(cache.root)) && existsSync(directory)
  if (isDscError(described) || isThere) return explainSystemError(described) ?? described
  return new DscError('CACHE_ROOT_INVALID', `${directory} was removed while it was being filled`, {
    hint: 'run the same command again; while dsc runs, only dsc deletes in the cache (dsc evict, dsc cleanup)',
    cause: error,
  })
}

/**
 * Ends the staging. A failure that `isForAll` also ends the tasks that wait for it, and gets an id in the history;
 * after any other, or none, the next task resumes the staging. If the record went away with the root, nothing is
 * thrown, because the reason for that matters more. Returns the failure.
 */
async function endFailedStaging(
  cache: Cache,
  turn: StageTurn,
  { failure, isForAll }: { readonly failure: DscError | undefined; readonly isForAll: boolean },
): Promise<DscError | undefined> {
  const { copy, stageLeaseId, leaseId } = turn
  // Fetched files are useful again once the source, its permissions or its objects are fixed.
  const directory = stagingDirectoryOf(cache.root, copy.copyId)
  const isHopeless = failure !== undefined && !failure.isRetryable && !holdsFetched(directory)
  const id = createFailureId()
  try {
    if (isHopeless) await discardDirectory(cache, directory)
    await cache.record.endStaging(
      {
        copyId: copy.copyId,
        stageLeaseId,
        useLeaseId: leaseId,
        isForgotten: isHopeless,
        failure:
          failure && isForAll
            ? { id, code: failure.code, message: failure.message, hint: failure.hint, facts: failure.facts }
            : undefined,
      },
      cache.nowMs(),
    )
  } catch (error) {
    if (existsSync(identityFile(cache.root))) throw error
    return failure
  }
  if (failure === undefined || !isForAll) return failure
  return new DscError(failure.code, failure.message, { hint: failure.hint, cause: failure, id })
}
