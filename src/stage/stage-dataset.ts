import { access, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DscError, isDscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { type Dataset, deriveDatasetName } from '../model/dataset.js'
import { formatCount } from '../model/format-count.js'
import type { Victim } from '../policy/plan-eviction.js'
import type { Joined } from '../records/record-store.js'
import { admitListing } from './admit-listing.js'
import type { Cache } from './cache.js'
import { copyDirectory, filesDirectory } from './cache-layout.js'
import { describeDiskFailure, describeRefusal } from './disk-failure.js'
import { type Downloaded, downloadFiles } from './download-files.js'
import { discardDirectory, publishedDirectoryOf } from './finish-evictions.js'
import { keepStageLease } from './keep-stage-lease.js'
import { leasePrevious } from './lease-previous.js'
import { type Listing, listIntoManifest } from './list-into-manifest.js'
import { measureCopy } from './measure-copy.js'
import { type NodeShare, openNodeShare } from './node-share.js'
import { publishCopy } from './publish-copy.js'
import { saveNode } from './save-node.js'
import type { Origins } from './source.js'

/** What a staging is doing, for those who watch. */
export type StageProgress =
  | { readonly step: 'listing'; readonly objects: number }
  /** The source could not be listed: `problem` says why; it is asked at most `attemptsLeft` times more. */
  | { readonly step: 'retrying'; readonly problem: string; readonly attemptsLeft: number }
  | { readonly step: 'evicting'; readonly victims: readonly Victim[] }
  | {
      readonly step: 'downloading'
      readonly writtenBytes: number
      readonly totalBytes: number
      readonly doneFiles: number
      readonly totalFiles: number
    }
  | { readonly step: 'publishing' }

export interface StageOptions {
  readonly onProgress?: (progress: StageProgress) => void
  readonly signal: AbortSignal
  readonly isRefresh?: boolean
  readonly sharedWith?: readonly string[]
  /** The version that other nodes have and this one is to have, too. */
  readonly version?: string | undefined
  /** Lists the source again, whatever an earlier attempt listed. */
  readonly isRelisted?: boolean | undefined
  /** Stops once the bytes are admitted, before any is fetched. The caller's use lease keeps the reservation. */
  readonly isReservation?: boolean | undefined
}

/** `lost`: another stager took over, look at the record again. `reserved`: admitted, nothing fetched. */
export type Staged =
  | {
      readonly outcome: 'ready'
      readonly copy: Copy
      readonly isNew: boolean
      readonly downloaded?: Downloaded & { readonly origins?: Origins }
    }
  | { readonly outcome: 'reserved'; readonly version: string }
  | { readonly outcome: 'lost' }

export type StageTurn = Extract<Joined, { outcome: 'stage' }>

/**
 * Stages a dataset as its one stager: list → admit → download → publish → record says ready.
 * Killed anywhere, the next stager goes on from what is on disk. On failure the use lease is released; what
 * was downloaded stays as an abandoned staging if trying again could help, else everything goes.
 */
export async function stageDataset(
  cache: Cache,
  dataset: Dataset,
  turn: StageTurn,
  options: StageOptions,
): Promise<Staged> {
  const share = openNodeShare(cache, turn.stageLeaseId)
  const kept = keepStageLease(cache, turn, { signal: options.signal, beforeRenewal: share.renew })
  try {
    const staged = await stage(cache, dataset, turn, { ...options, signal: kept.signal, share }, kept.report)
    await kept.stop()
    if (staged.outcome === 'reserved') {
      const { stageLeaseId, copy } = turn
      const ended = { copyId: copy.copyId, stageLeaseId, useLeaseId: null, isForgotten: false }
      await cache.record.endStaging(ended, cache.nowMs())
    }
    return staged
  } catch (error) {
    await kept.stop()
    if (kept.isLost()) return { outcome: 'lost' }
    const failure = describeRefusal(describeDiskFailure(error, turn.copy.directory), turn.copy.directory)
    await endFailedStaging(cache, turn, failure, options.signal.aborted)
    throw failure
  }
}

async function stage(
  cache: Cache,
  dataset: Dataset,
  turn: StageTurn,
  options: StageOptions & { readonly share: NodeShare },
  reportWritten: (writtenBytes: number) => void,
): Promise<Staged> {
  const { copy } = turn
  const { signal, onProgress, share } = options
  const published = publishedDirectoryOf(cache, copy)
  if (published !== undefined && (await isPublishedOnly(copy.directory, published))) {
    return markReady(
      cache,
      turn,
      published,
      'published by a stager that was killed before it could say so',
      {},
    )
  }
  await saveNode(cache)
  await share.waitForOthers(signal)
  await mkdir(copy.directory, { recursive: true })
  const { isRefresh = false, sharedWith = [], version } = options
  const staging = await cache.openStagingSource?.(dataset, { isRefresh, sharedWith, version })
  const source = staging ?? (await cache.openSource(dataset))
  try {
    const listing = await listIntoManifest({
      source,
      dataset,
      copyDirectory: copy.directory,
      requestLimit: share.requestLimit,
      ...{ stripe: copy.stripe, version, isRelisted: options.isRelisted },
      signal,
      onProgress: ({ objects }) => onProgress?.({ step: 'listing', objects }),
      onRetry: ({ message }, attemptsLeft) =>
        onProgress?.({ step: 'retrying', problem: message, attemptsLeft }),
    })
    await rememberSource(cache, dataset)
    if (copy.state !== 'staging' || copy.version !== listing.version) {
      const admitted = await admitListing(cache, turn, listing)
      if (admitted.outcome === 'lost') return admitted
      if (admitted.outcome === 'same-version') {
        await discardDirectory(cache, copy.directory)
        return { outcome: 'ready', copy: admitted.copy, isNew: false }
      }
      if (admitted.victims.length > 0) onProgress?.({ step: 'evicting', victims: admitted.victims })
    }
    if (options.isReservation) return { outcome: 'reserved', version: listing.version }
    const previous = await leasePrevious(cache, copy.dataset, listing.version)
    const downloaded = await downloadFiles({
      source,
      copyDirectory: copy.directory,
      previousCopyDirectory: previous?.directory,
      onReused: previous?.release,
      ...cache.transfer,
      requestLimit: share.requestLimit,
      bandwidthLimit: share.bandwidthLimit,
      signal,
      onProgress: ({ writtenBytes, doneFiles }) => {
        reportWritten(writtenBytes)
        onProgress?.({
          step: 'downloading',
          writtenBytes,
          totalBytes: listing.contentBytes,
          doneFiles,
          totalFiles: listing.files,
        })
      },
    }).finally(previous?.release)
    onProgress?.({ step: 'publishing' })
    const final = await publish(cache, copy, listing)
    const origins = staging?.describeOrigins()
    const told = `${describeDownload(downloaded)}${describeOrigins(origins)}`
    const detail = { ...downloaded, ...(origins ? { origins } : {}) }
    return await markReady(cache, turn, final, told, detail, detail)
  } finally {
    await source.close()
  }
}

/**
 * A source that was asked for by its URL is known to the record under its derived name from here on. Not earlier: a
 * URL under which nothing is listed leaves no dataset.
 */
async function rememberSource(cache: Cache, dataset: Dataset): Promise<void> {
  if (dataset.name !== deriveDatasetName(dataset.source)) return
  if (await cache.record.findDataset(dataset.name)) return
  await cache.record.saveDataset(dataset, cache.nowMs())
}

/** Gives the copy its final name, which no other copy has; what an earlier attempt left there goes first. */
async function publish(cache: Cache, copy: Copy, listing: Listing): Promise<string> {
  const finalDirectory = copyDirectory(cache.root, { ...copy, version: listing.version })
  await mkdir(dirname(finalDirectory), { recursive: true })
  if (await exists(finalDirectory)) await discardDirectory(cache, finalDirectory)
  await publishCopy({ copyDirectory: copy.directory, finalDirectory })
  return finalDirectory
}

async function markReady(
  cache: Cache,
  turn: StageTurn,
  directory: string,
  reason: string,
  detail: Readonly<Record<string, unknown>>,
  downloaded?: Downloaded & { readonly origins?: Origins },
): Promise<Staged> {
  const measured = await measureCopy(directory)
  const path = filesDirectory(directory)
  const isReady = await cache.record.markReady(
    {
      copyId: turn.copy.copyId,
      stageLeaseId: turn.stageLeaseId,
      directory,
      path,
      ...(isFromPeers(downloaded?.origins) ? { origin: 'peer' as const } : {}),
      chargedBytes: measured.diskBytes,
      chargedInodes: measured.inodes,
      reason,
      detail,
    },
    cache.nowMs(),
  )
  if (!isReady) return { outcome: 'lost' }
  const [copy] = await cache.record.listCopies({ copyId: turn.copy.copyId }, cache.nowMs())
  if (copy === undefined) return { outcome: 'lost' }
  return { outcome: 'ready', copy, isNew: true, ...(downloaded ? { downloaded } : {}) }
}

async function endFailedStaging(
  cache: Cache,
  turn: StageTurn,
  error: unknown,
  wasInterrupted: boolean,
): Promise<void> {
  const { copy, stageLeaseId, leaseId } = turn
  const failure = isDscError(error) && !wasInterrupted ? error : undefined
  const isHopeless = failure !== undefined && !failure.isRetryable
  if (isHopeless) await discardDirectory(cache, copy.directory)
  const hint = failure?.hint
  await cache.record.endStaging(
    {
      copyId: copy.copyId,
      stageLeaseId,
      useLeaseId: leaseId,
      isForgotten: isHopeless,
      ...(failure ? { failure: { code: failure.code, message: failure.message, hint } } : {}),
    },
    cache.nowMs(),
  )
}

/** Most of the bytes count. */
function isFromPeers(origins: Origins | undefined): boolean {
  if (origins === undefined) return false
  const fromPeers = Object.values(origins.peers).reduce((sum, bytes) => sum + bytes, 0)
  return fromPeers > origins.store
}

function describeOrigins(origins: Origins | undefined): string {
  const peers = Object.entries(origins?.peers ?? {})
  if (origins === undefined || peers.length === 0) return ''
  return `; ${origins.store} bytes from the store, ${peers.map(([node, bytes]) => `${bytes} from ${node}`).join(', ')}`
}

function describeDownload(downloaded: Downloaded): string {
  const verified = Object.entries(downloaded.verifiedBy)
    .map(([method, files]) => `${files} by ${method}`)
    .join(', ')
  return `fetched ${formatCount(downloaded.fetchedFiles, 'file')}, ${downloaded.fetchedBytes} bytes; reused ${downloaded.reusedBytes} bytes; verified ${verified || 'nothing'}`
}

/** A stager was killed after the rename and before the record: only the published directory is there. */
async function isPublishedOnly(stagingDirectory: string, published: string): Promise<boolean> {
  return !(await exists(stagingDirectory)) && (await exists(published))
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** The failure that interrupts a wait or a download on SIGINT and SIGTERM. */
export function interrupted(signal: AbortSignal): DscError {
  return new DscError('INTERRUPTED', `stopped by ${String(signal.reason)}`, {
    hint: 'run the same command again: it goes on where it stopped',
  })
}
