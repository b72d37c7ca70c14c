import { isIntact } from '../samples/read-samples.js'
import type { SampleTable } from '../samples/sample-table.js'
import { writeFully } from '../write-fully.js'
import type { SampleSource, SampleStatus } from './sample-source.js'

/** Reads parts of files of a dataset where they came from, such as S3. */
export interface RangeReader {
  /** For messages. */
  readonly name: string
  /** `length` bytes of `file` from `offset` on; the reader repeats what is worth repeating. */
  read(file: string, offset: number, length: number): Promise<Uint8Array>
  close(): Promise<void>
}

export interface RangeSourceOptions {
  readonly table: SampleTable
  readonly arenaFd: number
  readonly reader: RangeReader
  /** Reads in flight. Default 8. */
  readonly concurrency?: number
}

/** Samples of one file that lie closer than this are read in one go, in bytes. */
const COALESCE_GAP_BYTES = 64 * 1024
const COALESCE_MAX_BYTES = 8 * 1024 * 1024

interface Range {
  readonly file: number
  readonly start: number
  end: number
  readonly indexes: number[]
}

/** Samples read by ranges from where the dataset came from: slow, and there when nothing else is. */
export function createRangeSource(options: RangeSourceOptions): SampleSource {
  const { table, arenaFd, reader, concurrency = 8 } = options
  let running = 0
  const waiting: (() => void)[] = []
  const readRange = async (range: Range): Promise<Uint8Array> => {
    if (running >= concurrency) await new Promise<void>((resolve) => waiting.push(resolve))
    running++
    try {
      return await reader.read(table.fileName(range.file), range.start, range.end - range.start)
    } finally {
      running--
      waiting.shift()?.()
    }
  }
  return {
    table,
    layout: 'full',
    origin: 'store',
    nodeCount: 1,
    nodeName: () => reader.name,
    async read({ samples, offsets }, onSample) {
      const take = (index: number, bytes: Uint8Array): SampleStatus => {
        if (!isIntact(table, samples[index]!, bytes)) return 'corrupt'
        writeFully(arenaFd, bytes, offsets[index]!)
        return 'ok'
      }
      await Promise.all(
        planRanges(table, samples).map(async (range) => {
          const bytes = await readRange(range).catch(() => undefined)
          for (const index of range.indexes) {
            const from = table.offsets[samples[index]!]! - range.start
            const part = bytes?.subarray(from, from + table.lengths[samples[index]!]!)
            onSample(index, part ? take(index, part) : 'unreachable')
          }
        }),
      )
    },
    close: () => reader.close(),
  }
}

/** Which bytes to read for `samples`: neighbours in one file together. */
function planRanges(table: SampleTable, samples: Uint32Array): readonly Range[] {
  const indexes = Array.from(samples.keys()).sort((a, b) => {
    const [x, y] = [samples[a]!, samples[b]!]
    return table.files[x]! - table.files[y]! || table.offsets[x]! - table.offsets[y]!
  })
  const ranges: Range[] = []
  for (const index of indexes) {
    const sample = samples[index]!
    const [file, start] = [table.files[sample]!, table.offsets[sample]!]
    const end = start + table.lengths[sample]!
    const last = ranges.at(-1)
    const isNear = last?.file === file && start - last.end <= COALESCE_GAP_BYTES
    if (last && isNear && Math.max(end, last.end) - last.start <= COALESCE_MAX_BYTES) {
      last.indexes.push(index)
      last.end = Math.max(last.end, end)
    } else ranges.push({ file, start, end, indexes: [index] })
  }
  return ranges
}
