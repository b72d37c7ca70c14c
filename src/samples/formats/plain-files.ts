import { closeSync, openSync, readSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import { allocateForCrc32, crc32 } from '../../wasm/crc32.js'
import { toBytes, toText } from '../byte-path.js'
import { requireLength, tableFiles } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import type { Format, IndexedSamples, IndexRequest } from './format.js'

const READ_BYTES = 1 << 20
const scratch = { bytes: undefined as Buffer | undefined }

/** Each file is a sample. */
export const PLAIN_FILES: Format = {
  recognition: { title: 'plain files', mark: undefined, holdsSamples: () => true },
  index,
}

function index({ root, files, onProgress }: IndexRequest): IndexedSamples {
  const samples = new SampleTableBuilder()
  for (const [file, { path, size }] of files.entries()) {
    if (file % 512 === 0) onProgress?.(file, files.length)
    requireLength(() => toText(path), size)
    const fd = openSync(toBytes(`${root}/${path}`), 'r')
    try {
      const crc = checksumRange(fd, 0, size)
      if (crc === undefined)
        throw new DscError('COPY_DAMAGED', `${root}/${toText(path)} became shorter while it was indexed`)
      samples.add({ name: path, file, offset: 0, length: size, crc32: crc })
    } finally {
      closeSync(fd)
    }
  }
  return {
    table: samples.build(
      tableFiles(
        { format: 'file' },
        files.map(({ path }) => path),
      ),
    ),
    damaged: [],
  }
}

/** CRC-32 of `length` bytes of an open file from `offset` on; undefined if the file ends too early. */
function checksumRange(fd: number, offset: number, length: number): number | undefined {
  scratch.bytes ??= allocateForCrc32(READ_BYTES)
  let value = 0
  for (let done = 0; done < length; ) {
    const read = readSync(fd, scratch.bytes, 0, Math.min(READ_BYTES, length - done), offset + done)
    if (read === 0) return undefined
    value = crc32(scratch.bytes.subarray(0, read), value)
    done += read
  }
  return value
}
