import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from '../wasm/crc32.js'
import { type BytePath, fromText, toBytes, toText } from './byte-path.js'
import { digestSamples } from './digest-samples.js'
import type { PackedFiles } from './packed-files.js'
import { allocatePages } from './plan/shared-pages.js'
import { isIntact, SampleReader } from './read-samples.js'
import { openSampleTable, requireLength, type SampleTable, type TableFile } from './sample-table.js'
import { allocateTable, FINGERPRINT_AT, openColumns } from './table-layout.js'

/** Number of samples whose content `digestContent` looks at, and how far, in bytes. */
const LOOKED_SAMPLES = 16
const LOOKED_BYTES = 4096

/** Limits of what is read when a feed ends, so that it ends within a moment. */
const MOST_REST_SAMPLES = 1024
const MOST_REST_BYTES = 64 * 2 ** 20

/** The encodings of a table of plain files. */
const PLAIN_ENCODINGS = Buffer.from('[{"format":"file"}]')

/** Files that are samples, in the order of their paths, without reading them. */
export function listPlainFiles(files: PackedFiles): SampleTable {
  const { count, texts, sizes } = files
  // A character is a byte, and one separates two paths of a text.
  const pathBytes = texts.reduce((sum, text) => sum + text.length + 1, 0) - count
  const { bytes, columns } = allocateTable({
    ...{ count, nameCount: count, fileCount: count, nameBytes: pathBytes, pathBytes },
    ...{ rowNameBytes: 0, encodingBytes: PLAIN_ENCODINGS.length, offsetBytes: 4 },
  })
  columns.encodings.set(PLAIN_ENCODINGS)
  fillPaths(texts, columns.paths, columns.pathEnds)
  columns.names.set(columns.paths)
  columns.nameEnds.set(columns.pathEnds)
  for (let file = 0; file < count; file++) {
    if (sizes[file]! >= 2 ** 32) requireLength(() => toText(files.list()[file]!.path), sizes[file]!)
    columns.files[file] = file
    columns.firstSamples[file] = file
  }
  columns.lengths.set(sizes)
  return noteChecksums(openSampleTable(bytes))
}

/** Writes paths one after the other, and the end of each. */
function fillPaths(texts: readonly BytePath[], paths: Uint8Array, ends: Float64Array): void {
  let file = 0
  let end = 0
  for (const text of texts) {
    const bytes = toBytes(text)
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!
      if (byte === 0) ends[file++] = end
      else paths[end++] = byte
    }
    ends[file++] = end
  }
}

/** See `SampleTable`. */
export function listTimes({ count, mtimesMs }: PackedFiles): Float64Array {
  const times = allocatePages(Float64Array, count)
  times.set(mtimesMs)
  return times
}

/** The table of samples whose checksums are recorded when they are first read. */
export function noteChecksums(table: SampleTable): SampleTable {
  return { ...table, known: allocatePages(Uint8Array, table.count) }
}

/**
 * Reads the samples that were not read yet, if they are few: those that `last: 'drop'` leaves out of an epoch, which are
 * fewer than a batch of all ranks.
 */
export function readRest(root: string, table: SampleTable): void {
  const { known } = table
  if (!known) return
  const rest: number[] = []
  let bytes = 0
  for (let sample = known.indexOf(0); sample !== -1; sample = known.indexOf(0, sample + 1)) {
    bytes += table.lengths[sample]!
    if (rest.push(sample) > MOST_REST_SAMPLES || bytes > MOST_REST_BYTES) return
  }
  let place = Buffer.alloc(0)
  const reader = new SampleReader(root, table)
  reader.readAll(Uint32Array.from(rest), {
    place(index) {
      place = Buffer.alloc(table.lengths[rest[index]!]!)
      return place
    },
    done: (index, isRead) => void (isRead && isIntact(table, rest[index]!, place)),
  })
  reader.close()
}

/** The table with its fingerprint once every sample was read; undefined before. */
export function findFingerprint(table: SampleTable): SampleTable | undefined {
  if (!table.known?.every((known) => known === 1)) return undefined
  const bytes = table.bytes.slice()
  const files: TableFile[] = Array.from({ length: table.fileCount }, (_, file) => table.fileAt(file))
  bytes.set(
    digestSamples(openColumns(table.bytes as Uint8Array<SharedArrayBuffer>).columns, files),
    FINGERPRINT_AT,
  )
  return openSampleTable(bytes)
}

/**
 * Digest of the first bytes of some samples, spread over the table. With names and lengths it stands for the content of
 * a folder before all of it was read: it tells another content under the same names, but not a change of one sample.
 */
export function digestContent(root: string, table: SampleTable): string {
  const bytes = Buffer.alloc(LOOKED_BYTES)
  const digests: number[] = []
  const step = Math.max(1, Math.floor(table.count / LOOKED_SAMPLES))
  for (let sample = 0; sample < table.count; sample += step) {
    const path = toBytes(`${fromText(root)}/${table.rawFileName(table.files[sample]!)}`)
    digests.push(crc32(bytes.subarray(0, readStart(path, bytes))))
  }
  return digests.join(' ')
}

/** Reads the start of a file; returns the number of bytes, 0 if it cannot be read. */
function readStart(path: Buffer, target: Buffer): number {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, 'r')
    return readSync(descriptor, target, 0, target.length, 0)
  } catch {
    return 0 // the feed tells which samples it cannot read
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}
