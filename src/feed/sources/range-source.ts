import { isIntact } from '../../samples/read-samples.js'
import type { OnSample, ReadRequest, SampleSource, SampleStatus } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import { writeFully } from '../arena/write-fully.js'

/** Reads ranges of a dataset's files from its source, such as S3. */
export interface RangeReader {
  /** For messages. */
  readonly name: string
  /** Reads `length` bytes of `file` from `offset` on; retries if that makes sense. */
  read(file: string, offset: number, length: number): Promise<Uint8Array>
  close(): Promise<void>
}

interface RangeSourceOptions {
  readonly table: SampleTable
  readonly arenaFd: number
  readonly reader: RangeReader
}

/** Maximum number of reads in flight. */
const CONCURRENCY = 8

/** Maximum gap between samples of one file that are read together, in bytes. */
const COALESCE_GAP_BYTES = 64 * 1024
const COALESCE_MAX_BYTES = 8 * 1024 * 1024

interface Range {
  readonly file: number
  readonly start: number
  end: number
  readonly indexes: number[]
}

/** Samples read as ranges from the dataset's source: slow, but available when nothing else is. */
export class RangeSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'store'
  readonly nodeCount = 1
  readonly table: SampleTable
  readonly #options: RangeSourceOptions
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(options: RangeSourceOptions) {
    this.table = options.table
    this.#options = options
  }

  nodeName(): string {
    return this.#options.reader.name
  }

  async read({ samples, offsets, signal }: ReadRequest, onSample: OnSample): Promise<void> {
    const { table } = this
    const take = (index: number, bytes: Uint8Array): SampleStatus => {
      if (signal?.aborted) return 'unreachable' // its place in the arena may be another sample's by now
      if (!isIntact(table, samples[index]!, bytes)) return 'corrupt'
      writeFully(this.#options.arenaFd, bytes, offsets[index]!)
      return 'ok'
    }
    await Promise.all(
      planRanges(table, samples).map(async (range) => {
        const bytes = await this.#readRange(range).catch(() => undefined)
        for (const index of range.indexes) {
          const from = table.offsets[samples[index]!]! - range.start
          const part = bytes?.subarray(from, from + table.lengths[samples[index]!]!)
          onSample(index, part ? take(index, part) : 'unreachable')
        }
      }),
    )
  }

  close(): Promise<void> {
    return this.#options.reader.close()
  }

  /** Reads the range when its turn comes. */
  async #readRange(range: Range): Promise<Uint8Array> {
    if (this.#running >= CONCURRENCY) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running++
    try {
      return await this.#options.reader.read(
        this.table.fileName(range.file),
        range.start,
        range.end - range.start,
      )
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }
}

/** Plans the byte ranges to read for `samples`, merging neighbors in one file. */
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
