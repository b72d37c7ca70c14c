import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { toBytes } from '../byte-path.js'
import type { ListedFile } from '../packed-files.js'
import type { LeftOut } from '../plan/sample-files.js'
import type { SampleEncoding } from '../sample-encoding.js'
import type { TableFile } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import { findDisguise } from './disguise.js'
import type { IndexedSamples, IndexRequest } from './format.js'
import { noteDamage } from './scan-records.js'

const WINDOW_BYTES = 4 << 20

/** A shard with an impossible header. */
export class ShardDamage extends Error {
  /** Position, in bytes. */
  readonly at: number

  constructor(at: number, what: string) {
    super(what)
    this.at = at
  }
}

/** The head of a shard: its number of samples, and where each begins. */
export interface ShardHead {
  readonly count: number
  /** count + 1 positions in bytes: the start of each sample, and the end of the last. */
  readonly offsets: Uint32Array
  /** The bytes between the offsets and the first sample. */
  readonly config: Buffer
}

/** Returns the encoding of a shard. Throws ShardDamage if it contradicts the head. */
type DescribeShard = (shard: ListedFile, head: ShardHead) => SampleEncoding

/**
 * Lists the samples of shards that begin like MDS's and LitData's: u32 count, then count + 1 u32 offsets, little
 * endian, then the samples one after the other. A header counts only if all of it fits the file.
 */
export function indexOffsetTables(request: IndexRequest, describe: DescribeShard): IndexedSamples {
  const { root, files, onDamage, onProgress } = request
  const samples = new SampleTableBuilder()
  const damaged: LeftOut[] = []
  const tableFiles: TableFile[] = []
  const window = Buffer.allocUnsafeSlow(WINDOW_BYTES)
  for (const [file, listed] of files.entries()) {
    onProgress?.(file, files.length)
    const fd = openSync(toBytes(`${root}/${listed.path}`), 'r')
    let encoding: SampleEncoding | undefined
    try {
      const head = readHead(fd, listed.size)
      encoding = describe(listed, head)
      for (const [offset, length, crc] of checksums(fd, head, window))
        samples.addRow({ file, offset, length, crc32: crc })
    } catch (error) {
      if (!(error instanceof ShardDamage)) throw error
      const { what, remedy } = findDisguise(firstBytes(fd)) ?? { what: error.message, remedy: undefined }
      damaged.push(noteDamage({ listed, at: error.at, what, remedy }, onDamage))
    } finally {
      closeSync(fd)
    }
    tableFiles.push({ path: listed.path, rowName: listed.path, encoding: encoding ?? { format: 'file' } })
  }
  return { table: samples.build(tableFiles), damaged }
}

function firstBytes(fd: number): Buffer {
  const bytes = Buffer.alloc(8)
  return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0))
}

function readHead(fd: number, sizeBytes: number): ShardHead {
  const count = sizeBytes < 8 ? Number.NaN : readBytes(fd, 0, 4).readUInt32LE(0)
  const dataAt = 4 * (count + 2)
  if (!(dataAt <= sizeBytes))
    throw new ShardDamage(0, `${sizeBytes} bytes are too few for the offsets of ${count || 0} samples`)
  const bytes = readBytes(fd, 4, dataAt - 4)
  const offsets = Uint32Array.from({ length: count + 1 }, (_, sample) => bytes.readUInt32LE(4 * sample))
  for (const [sample, offset] of offsets.entries()) {
    const before = sample === 0 ? dataAt : offsets[sample - 1]!
    if (offset >= before && offset <= sizeBytes) continue
    const expected = `expected ${before} to ${sizeBytes}`
    throw new ShardDamage(4 + 4 * sample, `the offset of sample ${sample} is ${offset}, ${expected}`)
  }
  return { count, offsets, config: readBytes(fd, dataAt, Math.min(offsets[0]! - dataAt, WINDOW_BYTES)) }
}

function readBytes(fd: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let done = 0; done < length; ) {
    const read = readSync(fd, bytes, done, length - done, at + done)
    if (read === 0) throw new ShardDamage(at + done, 'the file became shorter while it was indexed')
    done += read
  }
  return bytes
}

/** Yields offset, length and CRC-32 of each sample, reading the shard once from its first sample to its last. */
function* checksums(
  fd: number,
  { count, offsets }: ShardHead,
  window: Buffer,
): Generator<[number, number, number]> {
  let start = 0
  let filled = 0
  for (let sample = 0; sample < count; sample++) {
    const offset = offsets[sample]!
    const end = offsets[sample + 1]!
    let crc = 0
    for (let at = offset; at < end; ) {
      const isHere = at >= start && at < start + filled && (end <= start + filled || end - at > window.length)
      if (!isHere) {
        start = at
        filled = readSync(fd, window, 0, window.length, at)
        if (filled === 0) throw new ShardDamage(at, 'the file became shorter while it was indexed')
      }
      const part = window.subarray(at - start, Math.min(end - start, filled))
      crc = crc32(part, crc)
      at += part.length
    }
    yield [offset, end - offset, crc]
  }
}
