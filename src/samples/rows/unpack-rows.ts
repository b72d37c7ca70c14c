import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { claimFolder } from '../../platform/claim-file.js'
import { makeFolder } from '../../platform/shared-folder.js'
import { type BytePath, fromText, toBytes, toText } from '../byte-path.js'
import type { ListedFile } from '../packed-files.js'
import { type RowsIndex, readRowsIndex } from './rows-index.js'
import { type RowsKept, randomSuffix, rowsPathsOf } from './rows-paths.js'
import { runRowsJobs } from './rows-threads.js'

/** Files to unpack, and where. */
export interface UnpackRequest {
  /** Folder of the Parquet files, absolute. */
  readonly root: BytePath
  /** The Parquet files, in byte order of their paths. */
  readonly files: readonly ListedFile[]
  /** Columns of each row, in this order; undefined: all. */
  readonly columns: readonly string[] | undefined
  readonly kept: RowsKept
  /** Folder for the rows of these columns, made if missing. */
  readonly folder: string
  /** Called before anything is written; rejects if there is no room for about `bytes`. */
  readonly makeRoom: (bytes: number) => Promise<void>
  /** Called once everything that was missing is on the disk. */
  readonly settle: () => Promise<void>
  /** See `runRowsJobs`. */
  readonly patienceMs?: number | undefined
  readonly onProgress?: ((filesDone: number, filesTotal: number) => void) | undefined
}

/**
 * Writes the missing rows of all files below `folder`, or only their lengths, once for all concurrent callers, and
 * resolves with their indexes in the order of the files. Keeps everything a killed process had finished. Rejects with
 * COPY_DAMAGED for a file that is not a Parquet file, USAGE for a missing column, DISK_FULL.
 */
export async function unpackRows(request: UnpackRequest): Promise<readonly RowsIndex[]> {
  const found = findIndexes(request)
  if (found.every((index) => index !== undefined)) return found
  makeFolder(request.folder)
  const claim = await claimFolder(request.folder, {
    isDone: () => findIndexes(request).every((index) => index !== undefined),
    onWait: () => request.onProgress?.(0, request.files.length),
  })
  if (claim) {
    using _ = atEndNow(() => claim.release())
    await unpackMissing(request)
  }
  return findIndexes(request).map((index, file) => {
    if (index) return index
    throw new DscError('COPY_DAMAGED', `${toText(request.files[file]!.path)} changed while it was unpacked`)
  })
}

function findIndexes({ files, folder, kept }: UnpackRequest): readonly (RowsIndex | undefined)[] {
  return files.map((file) => readRowsIndex(rowsPathsOf(fromText(folder), file.path, kept), file))
}

async function unpackMissing(request: UnpackRequest): Promise<void> {
  const { root, files, columns, kept, folder, patienceMs, onProgress } = request
  const parts = join(folder, 'parts')
  rmSync(parts, { recursive: true, force: true }) // unfinished files of a killed process
  mkdirSync(parts)
  const isThere = findIndexes(request).map((index) => index !== undefined)
  const missing = files.filter((_, file) => !isThere[file])
  if (missing.length === 0) return // the previous holder of the claim has done it
  const jobs = missing.map((file) => ({
    path: toBytes(`${root}/${file.path}`),
    shown: toText(file.path),
    columns,
    origin: { size: file.size, mtimeMs: file.mtimeMs },
    ...rowsPathsOf(fromText(folder), file.path, kept),
    part: join(parts, randomSuffix()),
  }))
  let bytes = 0
  const inspections = jobs.map(({ path, shown }) => ({ kind: 'inspect' as const, path, shown, columns }))
  await runRowsJobs(inspections, {
    patienceMs,
    onResult(_, result) {
      if (result.kind === 'inspect')
        bytes += (kept === 'rows' ? result.unpackedBytes : 0) + 8 * result.rowCount
    },
  })
  await request.makeRoom(bytes)
  let done = files.length - missing.length
  onProgress?.(done, files.length)
  await runRowsJobs(
    jobs.map((job) => ({ kind: 'unpack' as const, ...job })),
    { patienceMs, onResult: () => onProgress?.(++done, files.length) },
  )
  await request.settle()
}
