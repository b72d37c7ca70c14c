import { isCopyDirectoryOf, stagingDirectoryOf } from '../../cache/cache-layout.js'
import { isDscError } from '../../failure/dsc-error.js'
import type { FailureCode } from '../../failure/failure-table.js'
import type { Copy } from '../../model/copy.js'
import type { Passed } from './passed-datasets.js'
import { S3Error } from './s3-request.js'

/** Failures that pass bytes through without keeping them: no room, or a key that cannot become a file. */
const PASSES: readonly FailureCode[] = ['QUOTA_EXCEEDED', 'DISK_FULL', 'KEY_UNSAFE', 'CACHE_ROOT_INVALID']

/** Where a dataset is read from. */
export type Located = { readonly kind: 'copy'; readonly copy: Copy } | Passed

/** The version of each dataset that one connection reads, by name: it never switches midway. */
export type Pins = Map<string, string>

/** Chooses the copy that a connection reads from a dataset's copies, which are sorted newest first. */
export function chooseCopy(copies: readonly Copy[], pinnedId: string | undefined): Copy | undefined {
  const pinned = copies.find(({ copyId }) => copyId === pinnedId)
  return pinned ?? copies.find(({ state }) => state === 'ready') ?? copies[0]
}

/** Whether a dataset that could not be staged is passed through. */
export function isPassed(error: unknown): error is Error {
  // SQLite reports a nearly full disk as an I/O error, and some room may be free again by the time one looks.
  const isNearlyFull = String((error as { code?: unknown } | null)?.code).startsWith('SQLITE_IOERR')
  return isNearlyFull || isDscError(error, ...PASSES)
}

/** Whether a copy lies in its proper place in this cache: members of its group can write any path into the record. */
export function isInPlace(root: string, { copyId, dataset, version, directory, state }: Copy): boolean {
  if (state === 'staging') return directory === stagingDirectoryOf(root, copyId)
  return version !== null && isCopyDirectoryOf(root, { dataset, version }, directory)
}

/** A vanished object says nothing about the others that clients wait for: the next listing will. */
export function objectGone(failure: unknown): unknown {
  if (!isDscError(failure, 'SOURCE_NOT_FOUND')) return failure
  return new S3Error('ServiceUnavailable', failure.message)
}

/** The folder of the manifest at a located place. */
export function directoryOf(located: Located): string {
  return located.kind === 'copy' ? located.copy.directory : located.directory
}
