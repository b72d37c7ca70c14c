import { crc32 } from 'node:zlib'
import { createArenaWriter } from '../arena-writer.js'
import type { SampleTable } from '../samples/sample-table.js'
import type { OnSample, SampleStatus } from '../sources/sample-source.js'
import { ITEM_BYTES, ITEM_STATUS } from './storage-wire.js'

/** The samples of one request, as far as they are still to come. */
export interface ExpectedItems {
  readonly samples: Uint32Array
  readonly offsets: Float64Array
  readonly onSample: OnSample
  /** Sample → where it is wanted: twice when a request runs over the end of an epoch. Taken out as items come. */
  readonly open: Map<number, number[]>
  readonly notSent: number[]
  /** Samples whose bytes are thrown away: someone else writes their places. */
  readonly abandoned: Set<number>
}

/** Writes the items of one connection to the arena and says what became of each sample. */
export interface ItemReceiver {
  /** Some bytes of items, in order; without `expected` they are thrown away. */
  take(expected: ExpectedItems | undefined, bytes: Buffer): void
  /** Writes what is held back, then tells of the samples that are whole. Nothing is held back across turns. */
  flush(): void
}

/** The item whose bytes are arriving. */
interface Item {
  readonly index: number | undefined
  readonly status: number
  readonly length: number
  received: number
  sum: number
}

const NO_BYTES = Buffer.alloc(0)

export function createItemReceiver(table: SampleTable, arenaFd: number): ItemReceiver {
  const writer = createArenaWriter(arenaFd)
  const whole: { readonly expected: ExpectedItems; readonly index: number; readonly status: SampleStatus }[] =
    []
  const head = Buffer.alloc(ITEM_BYTES)
  let headFill = 0
  let item: Item | undefined

  const finish = (expected: ExpectedItems, index: number, { status, length, sum }: Item) => {
    const sample = expected.samples[index]!
    if (status === ITEM_STATUS.notSent) return void expected.notSent.push(index)
    const isIntact = length === table.lengths[sample] && sum === table.crcs[sample]
    const found = status !== ITEM_STATUS.ok ? 'missing' : isIntact ? 'ok' : 'corrupt'
    whole.push({ expected, index, status: found })
  }
  const takeBody = (at: Item, expected: ExpectedItems | undefined, bytes: Buffer) => {
    const { index } = at
    const isKept = expected && index !== undefined && !expected.abandoned.has(index)
    if (isKept && at.status === ITEM_STATUS.ok && bytes.length > 0) {
      const room = table.lengths[expected.samples[index]!]!
      if (at.received + bytes.length <= room) writer.write(bytes, expected.offsets[index]! + at.received)
    }
    at.sum = crc32(bytes, at.sum)
    at.received += bytes.length
    if (at.received < at.length) return
    item = undefined
    if (isKept) finish(expected, index, at)
  }

  return {
    take(expected, bytes) {
      for (let at = 0; at < bytes.length; ) {
        if (item) {
          const count = Math.min(item.length - item.received, bytes.length - at)
          takeBody(item, expected, bytes.subarray(at, at + count))
          at += count
          continue
        }
        const count = Math.min(ITEM_BYTES - headFill, bytes.length - at)
        bytes.copy(head, headFill, at, at + count)
        headFill += count
        at += count
        if (headFill < ITEM_BYTES) return
        headFill = 0
        const index = expected?.open.get(head.readUInt32LE(0))?.shift()
        item = { index, status: head[8]!, length: head.readUInt32LE(9), received: 0, sum: 0 }
        if (item.length === 0) takeBody(item, expected, NO_BYTES)
      }
    },
    flush() {
      writer.flush()
      for (const { expected, index, status } of whole.splice(0)) expected.onSample(index, status)
    },
  }
}
