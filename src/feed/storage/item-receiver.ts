import type { OnSample, SampleStatus } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import { crc32 } from '../../wasm/crc32.js'
import { ArenaWriter } from '../arena/arena-writer.js'
import { ITEM_BYTES, ITEM_STATUS } from './storage-wire.js'

/** The samples of one request that are still to arrive. */
export interface ExpectedItems {
  readonly samples: Uint32Array
  readonly offsets: Float64Array
  readonly onSample: OnSample
  /** Sample → its indexes: two if a request runs past the end of an epoch. Removed as items arrive. */
  readonly open: Map<number, number[]>
  readonly notSent: number[]
  /** Samples whose bytes to discard, because another source writes their places. */
  readonly abandoned: Set<number>
}

/** The item whose bytes are arriving. */
interface Item {
  readonly index: number | undefined
  readonly status: number
  readonly length: number
  received: number
  sum: number
}

/** A complete sample, reported once its bytes are in the arena. */
interface WholeSample {
  readonly expected: ExpectedItems
  readonly index: number
  readonly status: SampleStatus
}

const NO_BYTES = Buffer.alloc(0)

/** Writes the items of one connection to the arena and reports the status of each sample. */
export class ItemReceiver {
  readonly #table: SampleTable
  readonly #writer: ArenaWriter
  readonly #head = Buffer.alloc(ITEM_BYTES)
  #headFill = 0
  #item: Item | undefined
  #whole: WholeSample[] = []

  constructor(table: SampleTable, arenaFd: number) {
    this.#table = table
    this.#writer = new ArenaWriter(arenaFd)
  }

  /** Takes the next bytes of items; without `expected`, discards them. */
  take(expected: ExpectedItems | undefined, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#item) {
        const count = Math.min(this.#item.length - this.#item.received, bytes.length - at)
        this.#takeBody(this.#item, expected, bytes.subarray(at, at + count))
        at += count
        continue
      }
      const count = Math.min(ITEM_BYTES - this.#headFill, bytes.length - at)
      bytes.copy(this.#head, this.#headFill, at, at + count)
      this.#headFill += count
      at += count
      if (this.#headFill === ITEM_BYTES) this.#takeHead(expected)
    }
  }

  /** Writes gathered bytes, then reports complete samples. Nothing stays gathered across turns. */
  flush(): void {
    this.#writer.flush()
    const whole = this.#whole
    this.#whole = []
    for (const { expected, index, status } of whole) expected.onSample(index, status)
  }

  #takeHead(expected: ExpectedItems | undefined): void {
    const head = this.#head
    this.#headFill = 0
    const index = expected?.open.get(head.readUInt32LE(0))?.shift()
    this.#item = { index, status: head[8]!, length: head.readUInt32LE(9), received: 0, sum: 0 }
    if (this.#item.length === 0) this.#takeBody(this.#item, expected, NO_BYTES)
  }

  #takeBody(item: Item, expected: ExpectedItems | undefined, bytes: Buffer): void {
    const { index } = item
    const isKept = expected && index !== undefined && !expected.abandoned.has(index)
    if (isKept && item.status === ITEM_STATUS.ok && bytes.length > 0) {
      const room = this.#table.lengths[expected.samples[index]!]!
      if (item.received + bytes.length <= room)
        this.#writer.write(bytes, expected.offsets[index]! + item.received)
    }
    item.sum = crc32(bytes, item.sum)
    item.received += bytes.length
    if (item.received < item.length) return
    this.#item = undefined
    if (isKept) this.#finish(expected, index, item)
  }

  #finish(expected: ExpectedItems, index: number, { status, length, sum }: Item): void {
    const sample = expected.samples[index]!
    if (status === ITEM_STATUS.notSent) return void expected.notSent.push(index)
    const isIntact = length === this.#table.lengths[sample] && sum === this.#table.crcs[sample]
    const found = status !== ITEM_STATUS.ok ? 'missing' : isIntact ? 'ok' : 'corrupt'
    this.#whole.push({ expected, index, status: found })
  }
}
