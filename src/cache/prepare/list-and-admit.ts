import { logPhase } from '../../log/log.js'
import type { Listing } from '../../manifest/listing.js'
import type { Copy } from '../../model/copy.js'
import { type Dataset, deriveDatasetName } from '../../model/dataset.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { Cache } from '../cache.js'
import { stagingDirectoryOf } from '../cache-layout.js'
import { DEFAULT_CONCURRENCY } from '../download/download-files.js'
import { listIntoManifest } from '../download/list-into-manifest.js'
import { discardDirectory, finishEvictions } from '../eviction/finish-evictions.js'
import { settleAdmission } from '../eviction/settle-admission.js'
import { leaseNewest } from '../leases/lease-reusable.js'
import type { Staged } from './finish-staging.js'
import type { StageTurn } from './join-staging.js'
import type { OpenStaging, Staging } from './staging.js'

interface Work {
  readonly cache: Cache
  readonly turn: StageTurn
  readonly options: Staging & OpenStaging
}

/** `victims`: copies evicted to make room. Any other outcome ends the staging. */
type Listed =
  | { readonly outcome: 'listed'; readonly listing: Listing; readonly victims: readonly Victim[] }
  | Staged

/**
 * Lists the source and makes room for its content. A refresh compares it with the newest ready copy, which stays until
 * the record confirms that it is the same. If it is not, it may be evicted for its successor.
 */
export async function listAndAdmit(work: Work): Promise<Listed> {
  const listed = await listThenAdmit(work)
  const { dataset, asked = dataset } = work.options
  if (listed.outcome !== 'lost') await rememberSource(work.cache, asked)
  return listed
}

async function listThenAdmit(work: Work): Promise<Listed> {
  const { cache, turn, options } = work
  const known = options.isRefresh ? await leaseNewest(cache, turn.copy) : undefined
  try {
    const listing = await list(work, known?.directory)
    if (listing.isKnown) {
      const admitted = await admit(work, listing)
      if (admitted.outcome !== 'listed') return admitted
    } else {
      await known?.release()
      return await admit(work, listing)
    }
  } finally {
    await known?.release()
  }
  // The record has since forgotten the copy and its manifest may be deleted, so list the source in full.
  return await admit(work, await list(work, undefined))
}

async function admit({ cache, turn, options }: Work, listing: Listing): Promise<Listed> {
  const { copy } = turn
  if (!listing.isKnown) await options.admit?.(listing.neededBytes)
  const isAdmitted = copy.state === 'staging' && copy.version === listing.version && !listing.isKnown
  if (isAdmitted) {
    // The admitted stager may have been killed before the evictions that make room were done.
    const { record, node, nowMs } = cache
    await finishEvictions(cache, await record.listCopies({ node, states: ['evicting'] }, nowMs()))
    return { outcome: 'listed', listing, victims: [] }
  }
  const admitted = await logPhase(`${options.dataset.name}: admission`, () =>
    admitListing(cache, turn, { listing, isPrefetch: options.isPrefetch }),
  )
  if (admitted.outcome === 'lost') return admitted
  if (admitted.outcome === 'admitted') return { outcome: 'listed', listing, victims: admitted.victims }
  await discardDirectory(cache, stagingDirectoryOf(cache.root, copy.copyId))
  return { outcome: 'ready', copy: admitted.copy, isNew: false }
}

function list({ cache, turn, options }: Work, knownDirectory: string | undefined): Promise<Listing> {
  const { source, held, share, dataset, version, isRelisted, signal, onProgress } = options
  const { waitingThreads, isRefresh, isReservation } = options
  const { concurrency = DEFAULT_CONCURRENCY } = cache.transfer
  // Most refreshes find that nothing changed.
  const mayFetch = source.describeAccess !== undefined && !isRefresh && !isReservation
  if (mayFetch) waitingThreads.begin()
  return logPhase(`${dataset.name}: listing`, () =>
    listIntoManifest({
      source,
      dataset,
      copyDirectory: held.path,
      requestLimit: share.requestLimit,
      stallTimeoutMs: cache.transfer.stallTimeoutMs,
      stripe: turn.copy.stripe,
      knownDirectory,
      version,
      isRelisted,
      signal,
      onProgress: ({ objects, bytes }) => {
        if (mayFetch) waitingThreads.expect({ files: objects, bytes, concurrency })
        onProgress?.({ step: 'listing', objects })
      },
      onLeftOut: (problem) => onProgress?.({ step: 'leaving-out', problem }),
      onRetry: ({ message }, attemptsLeft) =>
        onProgress?.({ step: 'retrying', problem: message, attemptsLeft }),
    }),
  )
}

/**
 * Records a source that was asked for by its URL under its derived name. Not earlier: a URL without objects, or without
 * room, leaves no dataset behind.
 */
async function rememberSource(cache: Cache, dataset: Dataset): Promise<void> {
  if (dataset.name !== deriveDatasetName(dataset.source, { endpoint: dataset.endpoint })) return
  if (await cache.record.findDataset(dataset.name)) return
  await cache.record.saveDataset(dataset, cache.nowMs())
}

type Admitted =
  | { readonly outcome: 'admitted'; readonly victims: readonly Victim[] }
  | { readonly outcome: 'same-version'; readonly copy: Copy }
  | { readonly outcome: 'lost' }

/**
 * Makes room for a listed source and reserves it; the victims' bytes are off the disk when this resolves. Rejects with
 * QUOTA_EXCEEDED if no permitted eviction is enough; then it deleted nothing for this request.
 */
async function admitListing(
  cache: Cache,
  staged: { readonly copy: Copy; readonly stageLeaseId: string },
  { listing, isPrefetch }: { readonly listing: Listing; readonly isPrefetch?: boolean | undefined },
): Promise<Admitted> {
  const { copyId, dataset } = staged.copy
  const request = { datasets: 1, bytes: listing.neededBytes, inodes: listing.neededInodes }
  const settled = await settleAdmission(cache, {
    dataset,
    request,
    requestCopyId: copyId,
    isPrefetch,
    ask: (decide) =>
      cache.record.admit(
        {
          copyId,
          stageLeaseId: staged.stageLeaseId,
          version: listing.version,
          files: listing.files,
          contentBytes: listing.contentBytes,
          chargedBytes: listing.neededBytes,
          chargedInodes: listing.neededInodes,
        },
        decide,
        cache.nowMs(),
      ),
  })
  return settled.outcome === 'admit' ? { outcome: 'admitted', victims: settled.plan.victims } : settled
}
