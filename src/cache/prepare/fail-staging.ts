import { existsSync } from 'node:fs'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { createFailureId } from '../../failure/failure-id.js'
import { describeDiskFailure, describeRefusal } from '../../platform/disk-failure.js'
import type { Cache } from '../cache.js'
import { identityFile, stagingDirectoryOf } from '../cache-layout.js'
import { holdsFetched } from '../download/stale-staging.js'
import { discardDirectory } from '../eviction/finish-evictions.js'
import type { StageTurn } from './join-staging.js'

/** What the file system failed with while `directory` was filled, in the words of the cache; anything else as it is. */
export function describeStagingFailure(cache: Cache, error: unknown, directory: string): unknown {
  const described = describeRefusal(describeDiskFailure(error, directory), directory)
  // The folders of the staging may be there again: files are written into what there is.
  const isThere = existsSync(identityFile(cache.root)) && existsSync(directory)
  if (isDscError(described) || isThere) return described
  return new DscError('CACHE_ROOT_INVALID', `${directory} was removed while it was being filled`, {
    hint: 'run the same command again; while dsc runs, only dsc deletes in the cache (dsc evict, dsc cleanup)',
    cause: error,
  })
}

/**
 * Ends the staging with a failure that those who wait hear of; without one it can be gone on with. The record may have
 * gone with the root: then nothing is thrown, because why it went is of more use. Returns the failure as the history
 * knows it.
 */
export async function endFailedStaging(
  cache: Cache,
  turn: StageTurn,
  failure: DscError | undefined,
): Promise<DscError | undefined> {
  const { copy, stageLeaseId, leaseId } = turn
  // What was fetched is of use again once the source, its rights or its objects are put right.
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
        ...(failure && {
          failure: {
            id,
            code: failure.code,
            message: failure.message,
            hint: failure.hint,
            facts: failure.facts,
          },
        }),
      },
      cache.nowMs(),
    )
  } catch (error) {
    if (existsSync(identityFile(cache.root))) throw error
    return failure
  }
  return failure && new DscError(failure.code, failure.message, { hint: failure.hint, cause: failure, id })
}
