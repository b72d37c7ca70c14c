import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { ReaderPool } from '../threads/reader-pool.js'

/** Approximate size of a request's parts, in bytes: threads share them, and the first samples arrive early. */
const PART_BYTES = 1 << 20

/** Samples from a folder on this machine, read by the pool's threads. It counts as one node that holds everything. */
export class LocalSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'local'
  readonly nodeCount = 1
  readonly table: SampleTable
  readonly #root: string
  readonly #pool: ReaderPool

  constructor(root: string, table: SampleTable, pool: ReaderPool) {
    this.table = table
    this.#root = root
    this.#pool = pool
  }

  nodeName(): string {
    return this.#root
  }

  async read({ samples, offsets }: ReadRequest, onSample: OnSample): Promise<void> {
    const parts: Promise<void>[] = []
    for (let start = 0, end = 0; start < samples.length; start = end) {
      for (let bytes = 0; end < samples.length && bytes < PART_BYTES; end++)
        bytes += this.table.lengths[samples[end]!]!
      const part = { samples: samples.slice(start, end), offsets: offsets.slice(start, end) }
      const first = start
      parts.push(this.#readPart(part, (i, status) => onSample(first + i, status)))
    }
    // Every part ends before the request does: a thread may still write to the samples' places until then.
    const failed = (await Promise.allSettled(parts)).find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  async close(): Promise<void> {}

  async #readPart(part: Pick<ReadRequest, 'samples' | 'offsets'>, onSample: OnSample): Promise<void> {
    const result = await this.#pool.run({ kind: 'read', ...part })
    if (result.kind !== 'read') return
    for (const [i, status] of result.statuses.entries())
      onSample(i, status === 0 ? 'ok' : status === 1 ? 'missing' : 'corrupt')
  }
}
