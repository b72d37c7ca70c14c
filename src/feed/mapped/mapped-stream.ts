import { DscError } from '../../failure/dsc-error.js'
import type { SampleSource } from '../../samples/sample-source.js'
import type { Epochs } from '../epochs/epochs.js'
import type { BatchItems, RankItems } from '../epochs/rank-items.js'
import type { RankSequence } from '../plan/rank-sequence.js'
import type { BatchStream, LossRule } from '../stream/batch-stream.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import { LostSample } from '../stream/lost-sample.js'
import { openSlot, type Slot } from '../stream/slot.js'
import { StreamMeter } from '../stream/stream-meter.js'
import type { StreamCounts } from '../stream/stream-plan.js'
import type { PageTouch } from './page-touch.js'

/** Maximum number of samples to plan ahead of clients. */
const MOST_AHEAD_SAMPLES = 8192
/** Number of samples to plan in one go: more would hold up the feed's thread, 1 ms for these. */
const PLANNED_AT_ONCE = 1024
/** Maximum bytes being read at a time, so that nothing waits long for reads of an abandoned pass. */
const MOST_PENDING_BYTES = 32 * 2 ** 20

interface MappedStreamOptions {
  readonly items: RankItems
  readonly epochs: Epochs
  readonly source: Pick<SampleSource, 'table' | 'nodeName'>
  readonly touch: PageTouch
  /** Number of ranks that share the read-ahead memory. */
  readonly countRanks: () => number
  readonly nowMs: () => number
}

/** A batch with known content. */
interface PlannedBatch {
  /** Slots are made from these when the batch is read: thousands that wait would cost the collector of garbage more. */
  readonly items: BatchItems
  readonly bytes: number
  /** The result of `PageTouch.touch`; undefined once it ended without a loss. */
  statuses: Promise<Uint8Array> | undefined
}

/**
 * The batches of one rank whose clients map the sample files themselves: the feed provides the order, not the bytes.
 * Nothing is lent that clients must give back; samples read ahead lie in the kernel's memory.
 */
export class MappedStream implements BatchStream {
  readonly sequence: RankSequence
  readonly meter: StreamMeter
  readonly isGivingBack = false
  readonly counts: StreamCounts = {
    ...{ hits: 0, kept: 0, misses: 0, requests: 0, requested: 0 },
    ...{ carried: 0, carryRefused: 0, dropped: 0 },
  }
  readonly #options: MappedStreamOptions
  /** Keyed by epoch · stepsPerEpoch + step. */
  readonly #ahead = new Map<number, PlannedBatch>()
  #aheadBytes = 0
  #pendingBytes = 0
  /** Key after the last batch read, and key after the last one planned. */
  #next = 0
  #planned = 0
  #isPlanDue = false
  #isClosed = false

  constructor(options: MappedStreamOptions) {
    this.#options = options
    this.sequence = options.items.sequence
    this.meter = new StreamMeter(options.nowMs())
  }

  countReadyBatches(): number {
    let count = 0
    for (const { statuses } of this.#ahead.values()) if (!statuses) count++
    return count
  }

  async start(epoch: number, step: number): Promise<void> {
    const { epochs, items, nowMs } = this.#options
    this.meter.begin(nowMs())
    await epochs.enter(items, epoch)
    const next = epoch * this.sequence.stepsPerEpoch + step
    const isOnTheWay = next >= this.#next && next <= this.#planned
    for (const [number, { bytes }] of this.#ahead) {
      if (isOnTheWay && number >= next) continue
      this.#ahead.delete(number)
      this.#aheadBytes -= bytes
    }
    this.#next = next
    if (!isOnTheWay) this.#planned = next
    this.#planSoon()
  }

  async read(epoch: number, step: number, onLoss: LossRule = 'raise'): Promise<LeasedBatch> {
    const { epochs, items, nowMs, source } = this.#options
    const askedAtMs = nowMs()
    const entering = epochs.enter(items, epoch)
    if (entering) await entering
    const sinceMs = nowMs()
    const batch = this.#take(epoch, step)
    const all = this.#slotsOf(batch, epoch, step)
    this.counts[batch.statuses ? 'misses' : 'hits'] += all.length
    this.#planSoon()
    const found = batch.statuses ? this.#settle(all, await batch.statuses, onLoss) : undefined
    const { slots, lost } = found ?? { slots: all, lost: [] }
    this.meter.stall('epoch_build', 'order', sinceMs - askedAtMs)
    this.meter.stall('storage', 'disk', nowMs() - sinceMs)
    this.meter.deliver(epoch, askedAtMs, nowMs())
    this.meter.samplesDelivered += slots.length
    this.meter.bytesDelivered += batch.bytes
    return { epoch, step, slots, lost, offsets: slots.map(({ sample }) => source.table.offsets[sample]!) }
  }

  release(): void {}

  async pick(samples: readonly number[]): Promise<LeasedBatch> {
    const { source, touch, nowMs } = this.#options
    const askedAtMs = nowMs()
    const { count, offsets } = source.table
    const wrong = samples.find((sample) => !Number.isInteger(sample) || sample < 0 || sample >= count)
    if (wrong !== undefined)
      throw new DscError('USAGE', `sample ${wrong} is not one of the ${count} of this dataset`)
    const slots = samples.map((sample) => openSlot({ serial: -1, epoch: 0, position: 0, sample, node: 0 }))
    const statuses = await touch.touch(Uint32Array.from(samples))
    if (statuses) this.#settle(slots, statuses, 'raise')
    this.meter.stall('storage', 'disk', nowMs() - askedAtMs)
    return { epoch: 0, step: 0, slots, lost: [], offsets: samples.map((sample) => offsets[sample]!) }
  }

  idsOf(epoch: number, step: number, count: number): Promise<number[]> {
    return this.#options.items.idsOf(epoch, step, count)
  }

  /** Plans and reads the next batches, as far as there is room, and some at a time. */
  wake(): void {
    const { touch, countRanks } = this.#options
    const { batchSize } = this.sequence.options
    const mostBytes = touch.memoryBytes / Math.max(1, countRanks())
    const most = Math.max(2, Math.floor(MOST_AHEAD_SAMPLES / batchSize))
    this.#planned = Math.max(this.#planned, this.#next)
    const turnEnd = this.#planned + Math.ceil(PLANNED_AT_ONCE / batchSize)
    while (!this.#isClosed && this.#planned < this.#next + most) {
      if (this.#aheadBytes >= mostBytes || this.#pendingBytes >= MOST_PENDING_BYTES) return
      if (this.#planned >= turnEnd) {
        this.#planSoon()
        return
      }
      const { stepsPerEpoch } = this.sequence
      const epoch = Math.floor(this.#planned / stepsPerEpoch)
      const batch = this.#plan(epoch, this.#planned - epoch * stepsPerEpoch)
      if (!batch) return // the order of that epoch is being made
      this.#ahead.set(this.#planned++, batch)
      this.#aheadBytes += batch.bytes
    }
  }

  close(): void {
    this.#isClosed = true
    this.#ahead.clear()
  }

  /** Plans in a later turn, after the batches that can leave now: their clients wait. */
  #planSoon(): void {
    if (this.#isPlanDue) return
    this.#isPlanDue = true
    setImmediate(() => {
      this.#isPlanDue = false
      this.wake()
    })
  }

  #take(epoch: number, step: number): PlannedBatch {
    const number = epoch * this.sequence.stepsPerEpoch + step
    const known = this.#ahead.get(number)
    if (known) this.#aheadBytes -= known.bytes
    this.#ahead.delete(number)
    this.#next = Math.max(this.#next, number + 1)
    const batch = known ?? this.#plan(epoch, step)
    if (batch) return batch
    throw new DscError('FEED_GONE', 'another client of this rank has moved to another position')
  }

  /** Undefined while the order of the epoch is being made. */
  #plan(epoch: number, step: number): PlannedBatch | undefined {
    const { items, source, touch } = this.#options
    const found = items.findBatch(epoch, step)
    if (!found) return undefined
    const { lengths } = source.table
    const bytes = found.samples.reduce((sum, sample) => sum + lengths[sample]!, 0)
    const statuses = touch.touch(found.samples)
    const batch: PlannedBatch = { items: found, bytes, statuses }
    if (statuses) this.#watch(batch, statuses)
    return batch
  }

  #slotsOf({ items: { samples, positions } }: PlannedBatch, epoch: number, step: number): readonly Slot[] {
    const first = epoch * this.sequence.itemsPerEpoch + step * this.sequence.options.batchSize
    return positions.map((position, i) =>
      openSlot({ serial: first + i, epoch, position, sample: samples[i]!, node: 0 }),
    )
  }

  #watch(batch: PlannedBatch, statuses: Promise<Uint8Array>): void {
    this.counts.requests++
    this.counts.requested += batch.items.samples.length
    this.#pendingBytes += batch.bytes
    const over = (isIntact: boolean) => {
      this.#pendingBytes -= batch.bytes
      if (isIntact) batch.statuses = undefined
      this.#planSoon()
    }
    statuses.then(
      (found) => over(found.every((status) => status === 0)),
      () => over(false), // the reader of the batch gets the reason
    )
  }

  /** Sorts out the samples that could not be read. Throws LostSample for 'raise', or if none are left. */
  #settle(
    slots: readonly Slot[],
    statuses: Uint8Array,
    onLoss: LossRule,
  ): Pick<LeasedBatch, 'slots' | 'lost'> {
    const kept = slots.filter((_, i) => statuses[i] === 0)
    const worst = slots.findIndex((_, i) => statuses[i] !== 0)
    if (worst >= 0 && (onLoss === 'raise' || kept.length === 0))
      throw new LostSample(this.#options.source, slots[worst]!, statuses[worst] === 1 ? 'missing' : 'corrupt')
    return {
      slots: kept,
      lost: slots.flatMap(({ sample }, i) => (statuses[i] === 0 ? [] : [sample])),
    }
  }
}
