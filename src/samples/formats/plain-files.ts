import { closeSync, openSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import { toBytes, toText } from '../byte-path.js'
import { requireLength, tableFiles } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import { checksumRange } from './checksum-range.js'
import type { Format, IndexedSamples, IndexRequest } from './format.js'

/** Every file is a sample. */
export const PLAIN_FILES: Format = { recognition: { title: 'plain files', holdsSamples: () => true }, index }

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
