import { existsSync } from 'node:fs'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { createFailureId } from '../../failure/failure-id.js'
import { explainSystemError } from '../../failure/system-failure.js'
import { describeDiskFailure, describeRefusal } from '../../platform/disk-failure.js'
import type { Cache } from '../cache.js'
import { identityFile, stagingDirectoryOf } from '../cache-layout.js'
import { holdsFetched } from '../download/stale-staging.js'
import { discardDirectory } from '../eviction/finish-evictions.js'
import type { StageTurn } from './join-staging.js'

/**
 * Turns a file-system failure while filling `directory` into a failure of the cache; returns other errors unchanged.
 */
export function describeStagingFailure(cache: Cache, error: unknown, directory: string): unknown {
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
export async function endFailedStaging(
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
