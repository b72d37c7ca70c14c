import { DscError } from '../../failure/dsc-error.js'
import type { SampleSource } from '../../samples/sample-source.js'
import type { SampleArena } from '../arena/sample-arena.js'
import type { Epochs } from '../epochs/epochs.js'
import type { RankItems } from '../epochs/rank-items.js'
import { countOfStep, type RankSequence } from '../plan/rank-sequence.js'
import type { BatchStream, LossRule } from './batch-stream.js'
import type { LeasedBatch } from './leased-batch.js'
import { LostSample } from './lost-sample.js'
import { pickSamples } from './pick-samples.js'
import type { PrefetchSettings } from './request-plan.js'
import { movedAway, SampleRequests } from './sample-requests.js'
import type { CarryCopy, Slot, Want } from './slot.js'
import { StreamMeter } from './stream-meter.js'
import { type StreamCounts, StreamPlan } from './stream-plan.js'
import { WaitingRoom } from './waiting-room.js'

/** Maximum number of samples to announce to a source that can use them. */
const MAX_ANNOUNCED_SAMPLES = 2 ** 18

interface RankStreamOptions {
  readonly items: RankItems
  readonly epochs: Epochs
  readonly arena: SampleArena
  readonly source: SampleSource
  readonly settings: PrefetchSettings
  /** The streams that share the arena, including this one: room freed by one can serve the others. */
  readonly siblings: Iterable<{ wake(): void }>
  readonly nowMs: () => number
  /** Takes samples one after the other, waiting for each (seed 000 to the letter). */
  readonly isStrict: boolean
  /** How long a miss waits for room before it gives up. */
  readonly roomTimeoutMs: number
}

/** The batches of one rank from the feed's memory. */
export class RankStream implements BatchStream {
  readonly sequence: RankSequence
  readonly meter: StreamMeter
  readonly #options: RankStreamOptions
  readonly #plan: StreamPlan
  readonly #requests: SampleRequests
  readonly #room: WaitingRoom
  /** Batches being given back, to Cache_next or not, by their epoch. */
  readonly #leaving = new Map<Promise<void>, number>()
  /** Requests in flight. */
  readonly #issued = new Set<Promise<void>>()
  /** Resolves when the previous batch has been taken; used if samples are taken one after the other. */
  #turn: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(options: RankStreamOptions) {
    const { items, arena, source, epochs, settings, nowMs } = options
    this.#options = options
    this.sequence = items.sequence
    this.meter = new StreamMeter(nowMs())
    this.#plan = new StreamPlan({ items, room: arena, carry: epochs.carry, settings })
    this.#requests = new SampleRequests({ plan: this.#plan, arena, source })
    this.#room = new WaitingRoom({
      space: arena.space,
      plan: this.#plan,
      timeoutMs: options.roomTimeoutMs,
      nowMs,
    })
  }

  get counts(): Readonly<StreamCounts> {
    return this.#plan.counts
  }

  /** Whether batches are on their way back to the arena. */
  get isGivingBack(): boolean {
    return this.#leaving.size > 0
  }

  /** Number of complete batches in the arena that are not yet taken. */
  countReadyBatches(): number {
    return Math.floor(this.#plan.countReady() / this.sequence.options.batchSize)
  }

  /** Sets where the next client begins, so that prefetching runs ahead of it. */
  async start(epoch: number, step: number): Promise<void> {
    this.meter.begin(this.#options.nowMs())
    await this.#options.epochs.enter(this.#options.items, epoch)
    this.#plan.reposition(this.#firstOf(epoch, step))
    this.#requests.cancelUnwanted()
    void this.#announce(epoch, step)
    this.wake()
  }

  /**
   * Returns the batch at `step`, after waiting for all of its samples to be in the arena. If no source can deliver a
   * sample, it rejects or, with 'skip', leaves the sample out: the batch is then shorter, and rejects only if it would
   * be empty.
   */
  async read(epoch: number, step: number, onLoss: LossRule = 'raise'): Promise<LeasedBatch> {
    const { epochs, items, nowMs } = this.#options
    const askedAtMs = nowMs()
    // Samples that the previous epoch leaves behind are this one's first: without waiting, they would be read again.
    const left = [...this.#leaving].filter(([, from]) => from < epoch)
    if (left.length > 0) await Promise.all(left.map(([gone]) => gone))
    const entering = epochs.enter(items, epoch)
    if (entering) await entering
    const sinceMs = nowMs()
    const enteredBefore = this.#room.entered
    const { slots, lost } = await this.#takeAll(this.#serialsOf(epoch, step), onLoss)
    this.meter.stall('epoch_build', 'order', sinceMs - askedAtMs)
    if (this.#room.entered > enteredBefore) this.meter.stall('arena_full', 'memory', nowMs() - sinceMs)
    else this.meter.stall('storage', this.#requests.lastAwaited, nowMs() - sinceMs)
    this.meter.deliver(epoch, askedAtMs, nowMs())
    return this.#handOut({ epoch, step, slots, lost })
  }

  /** Releases a batch that a client is done with. It stays in place until it is known which of its samples are kept. */
  release(batch: LeasedBatch): void {
    const isOfOrder = batch.slots.some(({ serial }) => serial >= 0)
    const known = isOfOrder ? this.#options.epochs.whenKeptIsKnown(batch.epoch) : undefined
    const gone = known ? known.catch(() => {}).then(() => this.#giveBack(batch)) : this.#giveBack(batch)
    if (!gone) return
    const left = gone.then(() => void this.#leaving.delete(left))
    this.#leaving.set(left, batch.epoch)
  }

  /** Gives a batch back. Resolves when its kept samples have been copied; undefined if there is nothing to copy. */
  #giveBack(batch: LeasedBatch): Promise<void> | undefined {
    const copies: CarryCopy[] = []
    for (const slot of batch.slots) {
      if (slot.serial < 0) {
        this.#options.arena.space.finish(slot.extent!) // picked outside of the order: never kept
        continue
      }
      const copy = this.#plan.release(slot)
      if (copy) copies.push(copy)
    }
    const copied = copies.length > 0 ? this.#carry(copies) : undefined
    this.#wakeAll()
    return copied
  }

  /** Reads any samples by id, outside of the order (map-style access). Waits until all are in the arena. */
  pick(samples: readonly number[]): Promise<LeasedBatch> {
    const { arena, source, items, nowMs } = this.#options
    return pickSamples({ arena, source, placed: items.placed, meter: this.meter, nowMs }, samples)
  }

  /** Returns the ids of `count` batches from `step` on, in order. */
  idsOf(epoch: number, step: number, count: number): Promise<number[]> {
    return this.#options.items.idsOf(epoch, step, count)
  }

  /** Retries everything that had no room, and requests the next samples. */
  wake(): void {
    if (this.#isClosed) return
    this.#room.retryAll()
    for (let next = this.#plan.nextPrefetch(); next; next = this.#plan.nextPrefetch()) this.#issue(next)
  }

  close(): void {
    this.#isClosed = true
    this.#plan.close()
    this.#requests.cancelUnwanted()
    this.#room.close(new DscError('FEED_GONE', 'the feed is closing'))
  }

  /** Tells the source what this stream will read, if the source can use it. */
  async #announce(epoch: number, step: number): Promise<void> {
    const { source, items } = this.#options
    if (!source.expect) return
    const { stepsPerEpoch, options } = this.sequence
    const steps = Math.min(stepsPerEpoch - step, Math.ceil(MAX_ANNOUNCED_SAMPLES / options.batchSize))
    const samples = await items.idsOf(epoch, step, steps).catch(() => []) // the feed is closing
    if (!this.#isClosed) source.expect(this, samples)
  }

  #firstOf(epoch: number, step: number): number {
    return epoch * this.sequence.itemsPerEpoch + step * this.sequence.options.batchSize
  }

  #serialsOf(epoch: number, step: number): readonly number[] {
    const first = this.#firstOf(epoch, step)
    return Array.from({ length: countOfStep(this.sequence, step) }, (_, i) => first + i)
  }

  #issue(request: NonNullable<Want['request']>): void {
    const issued = this.#requests.issue(request).then(() => {
      this.#issued.delete(issued)
      this.wake()
    })
    this.#issued.add(issued)
  }

  #wakeAll(): void {
    for (const stream of this.#options.siblings) stream.wake()
  }

  #handOut(batch: Omit<LeasedBatch, 'offsets'>): LeasedBatch {
    const { source, arena } = this.#options
    this.meter.samplesDelivered += batch.slots.length
    for (const slot of batch.slots) this.meter.bytesDelivered += source.table.lengths[slot.sample]!
    const offsets = batch.slots.map((slot) => arena.offsetOf(slot.extent!))
    this.wake()
    return { ...batch, offsets }
  }

  /** Copies the samples that a batch leaves for the next epoch. */
  async #carry(copies: readonly CarryCopy[]): Promise<void> {
    await this.#options.arena.copy(copies).then(
      () => copies.forEach((copy) => void this.#plan.settleCopy(copy)),
      () => copies.forEach((copy) => void this.#plan.failCopy(copy)),
    )
    this.#wakeAll()
  }

  /** Announces an item and waits until it is ready; resolves at once on a hit. */
  #demand(serial: number): Promise<Slot> | Slot {
    let want = this.#plan.want(serial)
    if (want.outcome === 'blocked' && this.#options.epochs.freeAllUnused()) want = this.#plan.want(serial)
    if (want.outcome !== 'blocked') return this.#accept(want)
    return new Promise<Slot>((resolve, reject) => {
      const retry = () => {
        const again = this.#plan.want(serial)
        if (again.outcome === 'blocked') return false
        Promise.resolve(this.#accept(again)).then(resolve, reject)
        return true
      }
      this.#room.enter({ retry, fail: reject })
    })
  }

  #accept({ slot, request }: Want): Promise<Slot> | Slot {
    if (request) this.#issue(request)
    return slot.state === 'ready' ? slot : this.#requests.arrival(slot)
  }

  async #takeAll(serials: readonly number[], onLoss: LossRule): Promise<Pick<LeasedBatch, 'slots' | 'lost'>> {
    if (this.#options.isStrict) return { slots: await this.#takeInTurn(serials), lost: [] }
    const lost: number[] = []
    const demands = serials.map((serial) => this.#demand(serial))
    this.wake()
    const isWaiting = demands.some((each) => each instanceof Promise)
    const slots = isWaiting
      ? await this.#settleAll(demands, onLoss === 'skip' ? lost : undefined)
      : (demands as Slot[])
    if (slots.some((slot) => slot.state !== 'ready')) throw movedAway()
    for (const slot of slots) this.#plan.lease(slot)
    return { slots, lost }
  }

  /** Takes one batch after the other, like a single trainer, and one sample after the other, each with its request. */
  #takeInTurn(serials: readonly number[]): Promise<Slot[]> {
    const taken = this.#turn.then(async () => {
      const slots: Slot[] = []
      for (const serial of serials) {
        const slot = await this.#demand(serial)
        await Promise.all(this.#issued)
        await this.#deliver(slot)
        slots.push(slot)
      }
      return slots
    })
    this.#turn = taken.catch(() => {})
    return taken
  }

  /** Moves a sample for the client out of the prefetch space, if there is room. */
  async #deliver(slot: Slot): Promise<void> {
    const copy = this.#plan.planDelivery(slot)
    if (copy)
      try {
        await this.#options.arena.copy([copy])
        this.#plan.settleDelivery(copy)
      } catch (error) {
        this.#plan.failDelivery(copy)
        throw error
      }
    this.#plan.lease(slot)
  }

  /** Waits for all, so that none is left over. If one failed that `lost` does not take, gives back the others. */
  async #settleAll(
    demands: readonly (Promise<Slot> | Slot)[],
    lost: number[] | undefined,
  ): Promise<readonly Slot[]> {
    const outcomes = await Promise.allSettled(demands)
    const slots = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    let failure: PromiseRejectedResult | undefined
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue
      if (lost && slots.length > 0 && outcome.reason instanceof LostSample) lost.push(outcome.reason.sample)
      else failure ??= outcome
    }
    if (!failure) return slots
    for (const slot of slots) {
      if (slot.state !== 'ready') continue
      this.#plan.lease(slot)
      this.#plan.release(slot)
    }
    throw failure.reason
  }
}
