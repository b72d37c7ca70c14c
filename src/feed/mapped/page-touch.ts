import type { SampleTable } from '../../samples/sample-table.js'
import { DEFAULT_MEMORY_BYTES } from '../plan/arena-budget.js'
import type { ReaderPool } from '../threads/reader-pool.js'

/** What is read by one thread at a time, so that threads share a batch, bytes. */
const PART_BYTES = 1 << 20

/** While all is found in memory, one batch of so many is read to see whether it still is. */
const PROBED_BATCHES = 32

interface PageTouchOptions {
  readonly table: SampleTable
  readonly pool: ReaderPool
  readonly memoryBytes: number | undefined
}

/**
 * Reads samples that clients will map, in threads and ahead of them, so that their pages are in memory: a client that
 * touched a page on the disk would stand still, and one on a damaged disk would be killed. Each sample is read, and
 * compared with its checksum, when it is fed for the first time. After that only a probe is, until a probe came from
 * the disk: then memory is too short to keep all pages, and everything is read ahead until a batch does not.
 */
export class PageTouch {
  /** What may be read ahead of the clients of all ranks, bytes. */
  readonly memoryBytes: number
  readonly #options: PageTouchOptions
  /** One bit for each sample that was read and is intact. */
  readonly #seen: Uint8Array
  #areKept = true
  #untilProbe = PROBED_BATCHES
  #readBytes = 0

  constructor(options: PageTouchOptions) {
    this.#options = options
    this.memoryBytes = options.memoryBytes ?? DEFAULT_MEMORY_BYTES
    this.#seen = new Uint8Array(Math.ceil(options.table.count / 8))
  }

  counters(): Readonly<Record<string, number>> {
    return { mapped_read_bytes: this.#readBytes }
  }

  /**
   * Reads samples of one batch where that is due. Resolves with a status for each (0 ok, 1 missing, 2 corrupt);
   * undefined when nothing need be read.
   */
  touch(samples: Uint32Array): Promise<Uint8Array> | undefined {
    const isKnown = samples.every((sample) => this.#isSeen(sample))
    if (isKnown && this.#areKept && --this.#untilProbe > 0) return undefined
    this.#untilProbe = PROBED_BATCHES
    return this.#read(samples, isKnown)
  }

  async #read(samples: Uint32Array, isKnown: boolean): Promise<Uint8Array> {
    const { lengths } = this.#options.table
    const statuses = new Uint8Array(samples.length)
    const parts: Promise<void>[] = []
    let isFromDisk = false
    for (let start = 0, end = 0; start < samples.length; start = end) {
      for (let bytes = 0; end < samples.length && bytes < PART_BYTES; end++) bytes += lengths[samples[end]!]!
      const [first, part] = [start, samples.slice(start, end)]
      const read = this.#options.pool.run({ kind: 'touch', samples: part }).then((result) => {
        if (result.kind !== 'touch') throw new Error('a reader thread answered another question')
        statuses.set(result.statuses, first)
        isFromDisk ||= result.isFromDisk
      })
      parts.push(read)
    }
    const failed = (await Promise.allSettled(parts)).find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
    if (isKnown) this.#areKept = !isFromDisk
    for (const [i, status] of statuses.entries()) if (status === 0) this.#see(samples[i]!)
    this.#readBytes += samples.reduce((sum, sample) => sum + lengths[sample]!, 0)
    return statuses
  }

  #isSeen(sample: number): boolean {
    return (this.#seen[sample >> 3]! & (1 << (sample & 7))) !== 0
  }

  #see(sample: number): void {
    this.#seen[sample >> 3]! |= 1 << (sample & 7)
  }
}
