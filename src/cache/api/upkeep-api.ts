import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { Cache } from '../cache.js'
import type { PrepareProgress } from '../prepare/prepare-dataset.js'
import type { RepositoryRequest } from '../prepare/take-repository.js'
import type { AdoptRequest } from '../upkeep/adopt-folder.js'
import type { CleanUpAction } from '../upkeep/plan-clean-up.js'
import type { Verified } from '../upkeep/verify-dataset.js'
import type { NamedVersion, VerifiedVersion } from '../upkeep/verify-receipt.js'

/** How far a verification is: in a dataset, or in the folder of one that is adopted. */
export type ReadProgress =
  | { readonly step: 'verifying'; readonly dataset: string; readonly files: number; readonly bytes: number }
  | { readonly step: 'adopting'; readonly files: number }

/** Ends and watches an operation that takes long. */
interface Ways<Progress> {
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
}

/** Datasets whose copies on this node are read, by name; none: every ready copy that the caller may read. */
export interface VerifyRequest {
  readonly names: readonly string[]
  /** Whether damaged and missing files are fetched again. */
  readonly isRepair: boolean
}

/** A cleanup that is asked for. */
export interface CleanUpRequest {
  /** Whether to plan alone. */
  readonly isDryRun: boolean
  /** Whether abandoned downloads are finished first. */
  readonly isResumed: boolean
  /** Age at which an abandoned download is removed, in ms. Default: an hour. */
  readonly abandonedAfterMs?: number | undefined
  /** The user, who can take the evictions back; a service sees for itself who asks. */
  readonly by: string
}

/** The result of a cleanup, or its plan. */
export interface CleanedUp {
  readonly actions: readonly CleanUpAction[]
  /** Datasets whose abandoned downloads were finished. */
  readonly resumed: readonly string[]
}

/** A folder on the node's disk to take over under a name. */
export interface AdoptionRequest extends Pick<AdoptRequest, 'folder' | 'name'> {
  /** Its source, which the record learns; undefined: the source that a dataset of this name has already, if any. */
  readonly source?: Pick<Dataset, 'source' | 'endpoint' | 'pathStyle'> | undefined
}

/** A staged repository of a hub, and its commit. */
export interface TakenRepository {
  readonly copy: Copy
  readonly commit: string | undefined
}

/** The upkeep of a node's cache: who may read a dataset may verify it, and everything else is for admins. */
export interface UpkeepApi {
  verify(request: VerifyRequest, ways: Ways<ReadProgress>): Promise<Verified>
  /** Looks for the versions of a receipt at their sources and on this node. */
  verifyReceipt(used: readonly NamedVersion[], ways: Ways<ReadProgress>): Promise<readonly VerifiedVersion[]>
  cleanUp(request: CleanUpRequest, ways: { readonly signal: AbortSignal }): Promise<CleanedUp>
  /** Rejects as `adoptFolder`. Undefined: the record already has that version of the dataset. */
  adopt(request: AdoptionRequest, ways: Ways<ReadProgress>): Promise<Copy | undefined>
  /** Stages a repository from what the hub's own clients have of it, at their commit. */
  takeRepository(request: RepositoryRequest, ways: Ways<PrepareProgress>): Promise<TakenRepository>
}

/** The upkeep of the cache in this process. What it needs is loaded when it is asked for. */
export function createOwnUpkeep(cache: Cache): UpkeepApi {
  return {
    verify: async ({ names, isRepair }, { signal, onProgress }) => {
      const { verifyDataset } = await import('../upkeep/verify-dataset.js')
      return verifyDataset(cache, names, {
        isRepair,
        signal,
        onProgress: (dataset, files, bytes) => onProgress({ step: 'verifying', dataset, files, bytes }),
      })
    },
    verifyReceipt: async (used, { signal, onProgress }) => {
      const { verifyReceipt } = await import('../upkeep/verify-receipt.js')
      return verifyReceipt(cache, used, {
        signal,
        onProgress: (dataset, files, bytes) => onProgress({ step: 'verifying', dataset, files, bytes }),
      })
    },
    cleanUp: (request, { signal }) => cleanUp(cache, { ...request, signal }),
    adopt: async (request, { signal, onProgress }) => {
      const { adoptNamed } = await import('../upkeep/adopt-folder.js')
      return adoptNamed(cache, {
        ...request,
        signal,
        onProgress: (files) => onProgress({ step: 'adopting', files }),
      })
    },
    takeRepository: async (request, ways) =>
      (await import('../prepare/take-repository.js')).takeRepository(cache, request, ways),
  }
}

async function cleanUp(
  cache: Cache,
  options: CleanUpRequest & { readonly signal: AbortSignal },
): Promise<CleanedUp> {
  const { ABANDONED_AFTER_MS, cleanUpNode } = await import('../upkeep/keep-clean.js')
  const abandonedAfterMs = options.abandonedAfterMs ?? ABANDONED_AFTER_MS
  if (options.isDryRun) {
    const { planCleanUpOf } = await import('../upkeep/clean-up.js')
    return { actions: await planCleanUpOf(cache, { abandonedAfterMs }), resumed: [] }
  }
  const { signal, by } = options
  let resumed: readonly string[] = []
  if (options.isResumed) {
    const { resumeAbandoned } = await import('../prepare/resume-abandoned.js')
    resumed = await resumeAbandoned(cache, signal)
  }
  const actions = await cleanUpNode(cache, { abandonedAfterMs, signal, by })
  return { actions, resumed }
}
