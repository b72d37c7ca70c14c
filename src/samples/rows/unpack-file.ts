import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { atEndNow } from '../../failure/closers.js'
import { makeFolder } from '../../platform/shared-folder.js'
import { MessagePackWriter } from './message-pack.js'
import { packGroup } from './pack-group.js'
import { ParquetFile } from './parquet-file.js'
import { formatRowsIndex, type RowsIndex, type RowsOrigin } from './rows-index.js'

/** One Parquet file, and where its rows go. Paths are bytes, as names need not be UTF-8. */
export interface UnpackJob {
  readonly path: Uint8Array
  /** Names the file in messages. */
  readonly shown: string
  readonly columns: readonly string[] | undefined
  readonly origin: RowsOrigin
  /** Undefined: rows are measured for their index, but not kept. */
  readonly rows: Uint8Array | undefined
  readonly index: Uint8Array
  /** Path, on the same file system, for unfinished files; each job has its own. */
  readonly part: string
}

/** Bytes of rows to gather before writing them. */
const WRITE_BYTES = 4 << 20

/**
 * Writes the rows of a Parquet file one after the other, and their index, row group by row group. Both become visible
 * by renaming once they are on the disk, the index last: if it exists, so do the rows. Resolves with the number of
 * bytes written. `onColumn` is called with each column of a row group before it is decoded. Rejects like `ParquetFile`,
 * and with the system's error if the disk is full.
 */
export async function unpackFile(job: UnpackJob, onColumn: (what: string) => void): Promise<number> {
  const [rowsPath, indexPath] = [job.rows && Buffer.from(job.rows), Buffer.from(job.index)]
  const [rowsPart, indexPart] = [`${job.part}.rows`, `${job.part}.index`]
  const folder = Buffer.from(dirname(indexPath.toString('latin1')), 'latin1')
  makeFolder(folder)
  const file = await ParquetFile.open({ ...job, path: Buffer.from(job.path) })
  try {
    const bytes = formatRowsIndex(await writeRows(file, rowsPath && rowsPart, onColumn), job.origin)
    writeFileSync(indexPart, bytes, { flag: 'wx', flush: true })
    if (rowsPath) renameSync(rowsPart, rowsPath)
    renameSync(indexPart, indexPath)
    syncFolder(folder)
    return (rowsPath ? bytes.readDoubleLE(16) : 0) + bytes.length
  } finally {
    file.close()
    for (const part of [rowsPart, indexPart]) rmSync(part, { force: true })
  }
}

async function writeRows(
  file: ParquetFile,
  path: string | undefined,
  onColumn: (what: string) => void,
): Promise<RowsIndex> {
  const lengths = new Uint32Array(file.rowCount)
  const crcs = new Uint32Array(file.rowCount)
  const writer = new MessagePackWriter()
  const descriptor = path === undefined ? undefined : openSync(path, 'wx', 0o444)
  let row = 0
  let rowsBytes = 0
  let start = 0
  const flush = () => {
    const bytes = writer.written()
    for (let done = 0; descriptor !== undefined && done < bytes.length; )
      done += writeSync(descriptor, bytes, done)
    rowsBytes += bytes.length
    writer.clear()
    start = 0
  }
  const onRow = () => {
    lengths[row] = writer.length - start
    crcs[row++] = crc32(writer.written(start))
    start = writer.length
    if (start >= WRITE_BYTES) flush()
  }
  try {
    for (const group of file.groups) await packGroup(file, group, { writer, onRow, onColumn })
    flush()
    if (descriptor !== undefined) fsyncSync(descriptor)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
  return { lengths, crcs, rowsBytes }
}

/** Writes the names in a folder to the disk. */
function syncFolder(folder: Buffer): void {
  const descriptor = openSync(folder, 'r')
  using _ = atEndNow(() => closeSync(descriptor))
  fsyncSync(descriptor)
}
