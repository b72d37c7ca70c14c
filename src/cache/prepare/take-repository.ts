import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { holdByThisProcess } from '../../platform/processes.js'
import type { Cache } from '../cache.js'
import { type PrepareProgress, prepareDataset } from './prepare-dataset.js'

/** A repository that the hub's own clients have downloaded, and the dataset that it becomes. */
export interface RepositoryRequest {
  readonly dataset: Dataset
  /** The source at the commit that the clients have. */
  readonly pinnedSource: string
  /** Folder of the repository in the clients' cache. */
  readonly directory: string
}

/**
 * Stages a dataset at the commit of a downloaded repository, from what is kept of the repository. Resolves with the
 * ready copy and its commit, which is another one if this node already had the dataset.
 */
export async function takeRepository(
  cache: Cache,
  { dataset, pinnedSource, directory }: RepositoryRequest,
  options: { readonly signal: AbortSignal; readonly onProgress: (progress: PrepareProgress) => void },
): Promise<{ readonly copy: Copy; readonly commit: string | undefined }> {
  // Do not ask other nodes: they may have the branch at another commit.
  const { openStagingSource: _, ...own } = cache
  const pinned = {
    ...own,
    openSource: (asked: Dataset) => cache.openSource({ ...asked, source: pinnedSource }),
    findKept: () => ({ directory, within: '' }),
  }
  const lease = { task: 'dsc adopt', holder: holdByThisProcess(), expiresAtMs: null }
  const request = { dataset, lease, isRefresh: false, mayWait: true }
  // An earlier attempt may have listed another commit.
  const { copy, leaseId } = await prepareDataset(pinned, request, { ...options, isRelisted: true })
  await cache.record.releaseUses({ leaseId }, cache.nowMs())
  return { copy, commit: readCommit(copy) }
}

/** The commit of a ready copy of a repository. */
function readCommit(copy: Copy): string | undefined {
  using manifest = Manifest.openPublished(copy.directory)
  return manifest.entries('present').next().value?.versionId ?? undefined
}
