import { DscError } from '../failure/dsc-error.js'
import { ARENA_BASE } from './arena-file.js'
import { LostSample } from './lost-sample.js'
import { pickSamples } from './pick-samples.js'
import type { ArenaPlan } from './plan/arena-plan.js'
import type { Extent } from './plan/arena-zone.js'
import type { ItemPositions } from './plan/assignment.js'
import type { EpochOrder } from './plan/order.js'
import { countOfStep, type RankSequence } from './plan/rank-sequence.js'
import type { CarryCopy, SampleRequest, Slot, Want } from './plan/slot.js'
import type { StreamCounts, StreamPlan } from './plan/stream-plan.js'
import type { SampleSource, SampleStatus } from './sources/sample-source.js'
import { createStreamMeter, type StreamMeter } from './stream-meter.js'
import { createWaitingRoom } from './waiting-room.js'

/** Samples of one batch, readable in the arena until the batch is released. */
export interface LeasedBatch {
  readonly epoch: number
  readonly step: number
  readonly slots: readonly Slot[]
  /** Bytes from the start of the arena file, one per sample. */
  readonly offsets: readonly number[]
  /** Samples of the batch that no source could give; only where the reader said to skip them. */
  readonly lost: readonly number[]
}

/** The batches of one rank. */
export interface FeedStream {
  readonly sequence: RankSequence
  readonly counts: Readonly<StreamCounts>
  readonly meter: StreamMeter
  /** Whole batches that are in the arena and not yet taken. */
  countReadyBatches(): number
  /** Says where the next client begins, so that prefetching runs ahead of it. */
  start(epoch: number, step: number): Promise<void>
  /**
   * The batch at `step`; waits until all of its samples are in the arena. A sample that no source could give makes
   * it reject, or, where `isSkipping`, is left out: the batch is shorter then, and rejects only when nothing is left.
   */
  read(epoch: number, step: number, isSkipping?: boolean): Promise<LeasedBatch>
  release(batch: LeasedBatch): void
  /** Any samples, by id, outside of the order (map-style access). Waits until all are in the arena. */
  pick(samples: readonly number[]): Promise<LeasedBatch>
  /** The ids of `count` batches from `step` on, one after the other. */
  idsOf(epoch: number, step: number, count: number): Promise<number[]>
  /** Tries again what had no room. */
  wake(): void
  close(): void
}

export interface FeedStreamOptions {
  readonly sequence: RankSequence
  readonly positionOf: ItemPositions
  readonly plan: StreamPlan
  readonly arena: ArenaPlan
  readonly source: SampleSource
  /** Resolves when the orders that `epoch` needs are there; undefined when they are. */
  readonly enterEpoch: (epoch: number) => Promise<void> | undefined
  /** The order of `epoch`, made if need be. */
  readonly orderOf: (epoch: number) => Promise<EpochOrder>
  /** Room for one sample outside of the order. */
  readonly reserve: (sample: number) => Extent | undefined
  readonly nodeOf: (sample: number, position: number) => number
  readonly copyInArena: (copies: readonly CarryCopy[]) => Promise<void>
  /** Called when room may have come free. */
  readonly onFreed: () => void
  readonly nowMs: () => number
  /** Takes one sample after the other, waiting for each (seed 000 to the letter). */
  readonly isStrict: boolean
  /** A miss without room gives up after this long. */
  readonly roomTimeoutMs: number
}

interface Waiter {
  readonly settled: (slot: Slot) => void
  readonly failed: (error: unknown) => void
}

export function createFeedStream(options: FeedStreamOptions): FeedStream {
  const { sequence, plan, arena, source, nowMs } = options
  const { batchSize } = sequence.options
  const waiters = new Map<Slot, Waiter>()
  const room = createWaitingRoom({
    ...{ arena, nowMs, timeoutMs: options.roomTimeoutMs },
    makeRoom: () => plan.dropFarthest(),
  })
  /** Copies to Cache_next that are being made, by the epoch that gave them up. */
  const copying = new Map<Promise<void>, number>()
  /** Requests that are not over, and how to give each up. */
  const running = new Map<SampleRequest, AbortController>()
  let isClosed = false
  const meter = createStreamMeter(nowMs())

  const settle = (slot: Slot, status: SampleStatus) => {
    plan.settle(slot, status === 'ok')
    const waiter = waiters.get(slot)
    if (!waiter) return
    waiters.delete(slot)
    if (slot.state === 'dropped') waiter.failed(movedAway())
    else if (status === 'ok') waiter.settled(slot)
    else waiter.failed(new LostSample(source, slot, status))
  }
  const movedAway = () =>
    new DscError('FEED_GONE', 'another client of this rank has moved to another position')

  const issue = (request: SampleRequest) => {
    const isSettled = new Uint8Array(request.slots.length)
    const samples = Uint32Array.from(request.slots, (slot) => slot.sample)
    const offsets = Float64Array.from(request.slots, (slot) => ARENA_BASE + arena.offsetOf(slot.extent!))
    const giveUp = new AbortController()
    running.set(request, giveUp)
    const finish = (error?: unknown) => {
      running.delete(request)
      for (const [i, slot] of request.slots.entries()) {
        if (isSettled[i]) continue
        const waiter = waiters.get(slot)
        if (error && waiter) {
          waiters.delete(slot)
          plan.settle(slot, false)
          waiter.failed(error)
        } else settle(slot, 'unreachable')
      }
      plan.finishRequest(request)
      pump()
    }
    const { node, isMiss } = request
    source
      .read({ node, samples, offsets, isMiss, signal: giveUp.signal }, (i, status) => {
        if (!isSettled[i]) settle(request.slots[i]!, status)
        isSettled[i] = 1
      })
      .then(() => finish(), finish)
  }

  /** Gives up requests of which nothing is wanted any more. */
  const cancelUnwanted = () => {
    for (const [request, giveUp] of running)
      if (!request.slots.some(({ state }) => state === 'inflight')) giveUp.abort()
  }

  const pump = () => {
    if (isClosed) return
    room.retryAll()
    for (let request = plan.nextPrefetch(); request; request = plan.nextPrefetch()) issue(request)
  }

  /** Announces an item and waits until it is ready; resolves at once on a hit. */
  const demand = (serial: number): Promise<Slot> | Slot => {
    const accept = (want: Want): Promise<Slot> | Slot => {
      if (want.request) issue(want.request)
      if (want.slot.state === 'ready') return want.slot
      return new Promise<Slot>((settled, failed) => waiters.set(want.slot, { settled, failed }))
    }
    const want = plan.want(serial)
    if (want.outcome !== 'blocked') return accept(want)
    return new Promise<Slot>((resolve, reject) => {
      const retry = () => {
        const again = plan.want(serial)
        if (again.outcome === 'blocked') return false
        Promise.resolve(accept(again)).then(resolve, reject)
        return true
      }
      room.enter(retry, reject)
    })
  }

  const takeAll = async (
    serials: readonly number[],
    isSkipping: boolean,
  ): Promise<{ slots: Slot[]; lost: number[] }> => {
    const lost: number[] = []
    if (options.isStrict) {
      const slots: Slot[] = []
      for (const serial of serials) {
        const slot = await demand(serial)
        plan.lease(slot)
        slots.push(slot)
      }
      return { slots, lost }
    }
    const demands = serials.map(demand)
    pump()
    const isWaiting = demands.some((each) => each instanceof Promise)
    const slots = isWaiting ? await settleAll(demands, isSkipping ? lost : undefined) : (demands as Slot[])
    if (slots.some((slot) => slot.state !== 'ready')) throw movedAway()
    for (const slot of slots) plan.lease(slot)
    return { slots, lost }
  }

  /** Waits for all, so that none is left over; gives back what came when one failed and `lost` does not take it. */
  const settleAll = async (
    demands: readonly (Promise<Slot> | Slot)[],
    lost: number[] | undefined,
  ): Promise<Slot[]> => {
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
      plan.lease(slot)
      plan.release(slot)
    }
    throw failure.reason
  }

  return {
    sequence,
    counts: plan.counts,
    meter,
    countReadyBatches: () => Math.floor(plan.countReady() / batchSize),
    async start(epoch, step) {
      meter.begin(nowMs())
      await options.enterEpoch(epoch)
      plan.reposition(epoch * sequence.itemsPerEpoch + step * batchSize)
      cancelUnwanted()
      pump()
    },
    async read(epoch, step, isSkipping = false) {
      const askedAtMs = nowMs()
      const entering = options.enterEpoch(epoch)
      if (entering) await entering
      // What the epoch before leaves behind is this one's first samples: without it they would be read again.
      const left = [...copying].filter(([, of]) => of < epoch)
      if (left.length > 0) await Promise.all(left.map(([copied]) => copied))
      const first = epoch * sequence.itemsPerEpoch + step * batchSize
      const serials = Array.from({ length: countOfStep(sequence, step) }, (_, i) => first + i)
      const sinceMs = nowMs()
      const enteredBefore = room.entered
      const { slots, lost } = await takeAll(serials, isSkipping)
      meter.stallMs.epoch_build += sinceMs - askedAtMs
      meter.stallMs[room.entered > enteredBefore ? 'arena_full' : 'storage'] += nowMs() - sinceMs
      meter.deliver(epoch, askedAtMs, nowMs())
      meter.samplesDelivered += slots.length
      for (const slot of slots) meter.bytesDelivered += source.table.lengths[slot.sample]!
      const offsets = slots.map((slot) => ARENA_BASE + arena.offsetOf(slot.extent!))
      pump()
      return { epoch, step, slots, offsets, lost }
    },
    release(batch) {
      const copies: CarryCopy[] = []
      for (const slot of batch.slots) {
        if (slot.serial < 0) {
          arena.finish(slot.extent!)
          continue
        }
        const copy = plan.release(slot)
        if (copy) copies.push(copy)
      }
      if (copies.length > 0) {
        const settle = (isMade: boolean) => {
          for (const copy of copies) plan.settleCopy(copy, isMade)
          copying.delete(copied)
          options.onFreed()
        }
        const copied = options.copyInArena(copies).then(
          () => settle(true),
          () => settle(false),
        )
        copying.set(copied, batch.epoch)
      }
      options.onFreed()
    },
    pick: (samples) => pickSamples(options, samples),
    async idsOf(epoch, step, count) {
      const order = await options.orderOf(epoch)
      const from = step * batchSize
      const to = Math.min(sequence.itemsPerEpoch, (step + count) * batchSize)
      return Array.from({ length: Math.max(0, to - from) }, (_, i) =>
        order.sampleAt(options.positionOf(order, from + i) % sequence.options.sampleCount),
      )
    },
    wake: pump,
    close() {
      isClosed = true
      plan.close()
      cancelUnwanted()
      room.close(new DscError('FEED_GONE', 'the feed is closing'))
    },
  }
}
