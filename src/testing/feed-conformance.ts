import { ArenaSpace } from '../feed/arena/arena-space.js'
import { CarryOver } from '../feed/epochs/carry-over.js'
import { RankItems } from '../feed/epochs/rank-items.js'
import { planOrder } from '../feed/plan/order.js'
import { planRankSequence, positionOfItem } from '../feed/plan/rank-sequence.js'
import type { SampleRequest } from '../feed/stream/slot.js'
import { StreamPlan } from '../feed/stream/stream-plan.js'
import { makePrefix } from './make-prefix.js'

/** A literal run of the two seeds' methods: one reader, one sample at a time, requesting only on a miss. */
export interface ConformanceOptions {
  readonly sampleCount: number
  readonly seed: number
  readonly epochs: number
  readonly nodeCount: number
  /** Number of compute nodes; the trace is the first one's, which reads its part of each epoch. Default 1. */
  readonly world?: number
  readonly k: number
  /** Size of the prefetch space (seed 000), in bytes. */
  readonly arenaBytes: number
  /** Samples in the prefix of S_next (seed 001); 0 leaves Cache_next out. */
  readonly prefixCount: number
  /** Size of a sample, in bytes. */
  readonly lengthOf: (sample: number) => number
  readonly threshold: number
}

/** One line per event, for comparison with the reference models. */
export function traceConformance(options: ConformanceOptions): string[] {
  const { sampleCount, seed, epochs, nodeCount, lengthOf } = options
  const trace: string[] = []
  const totalLength = Array.from({ length: sampleCount }, (_, sample) => lengthOf(sample)).reduce(
    (a, b) => a + b,
    0,
  )
  const space: ArenaSpace = new ArenaSpace({
    totalBytes: options.arenaBytes + 2 * totalLength, // the top end (Cache_next, delivery) is a separate space
    eviction: 'patent',
    threshold: options.threshold,
    moveChunkBytes: Number.POSITIVE_INFINITY,
    move: () => {},
    observer: {
      evicted: (run) =>
        void trace.push(`evict ${run.map((extent) => space.extents.sampleOf(extent)).join(' ')}`),
      moved: (run) =>
        void trace.push(`move ${run.map((extent) => space.extents.sampleOf(extent)).join(' ')}`),
    },
  })
  space.setLimits({ bottomBytes: options.arenaBytes, topBytes: 2 * totalLength })
  const carry = new CarryOver(space.extents)
  const orderOf = (epoch: number) => planOrder({ sampleCount, seed, epoch, kind: 'shuffle' })
  const orders = Array.from({ length: epochs + 1 }, (_, epoch) => orderOf(epoch))
  const sequence = planRankSequence({
    sampleCount,
    batchSize: 1,
    world: options.world ?? 1,
    rank: 0,
    replicate: 1,
    last: 'drop',
  })
  const items = new RankItems({
    sequence,
    rule: 'fixed',
    placed: { layout: 'striped', nodeCount },
    orders: { find: (epoch) => orders[epoch], get: async (epoch) => orders[epoch]! },
    isEachOnce: true,
  })
  const plan = new StreamPlan({
    items,
    room: {
      space,
      extentBytesOf: lengthOf,
      prefetchRoomBytes: () => Number.POSITIVE_INFINITY,
      carryBytes: Number.POSITIVE_INFINITY,
    },
    carry,
    settings: {
      k: options.k,
      maxRequestBytes: Number.POSITIVE_INFINITY,
      lowWater: -1,
      inFlightPerNode: 1,
      isPastEnd: false,
      isStaggered: false,
      isBatched: false,
    },
  })
  const answer = (request: SampleRequest) => {
    trace.push(`request ${request.node}: ${request.slots.map((slot) => slot.sample).join(' ')}`)
    for (const slot of request.slots) plan.settle(slot)
    plan.finishRequest(request)
  }
  for (let epoch = 0; epoch < epochs; epoch++) {
    const next = orders[epoch + 1]!
    const samples = Array.from({ length: options.prefixCount }, (_, i) =>
      next.sampleAt(positionOfItem(sequence, i)),
    )
    carry.setPrefix(epoch + 1, makePrefix(sampleCount, samples))
    carry.forgetBefore(epoch)
    for (const unused of carry.takeUnused(Number.POSITIVE_INFINITY)) space.finish(unused)
    for (let item = 0; item < sequence.itemsPerEpoch; item++) {
      const want = plan.want(epoch * sequence.itemsPerEpoch + item)
      if (want.request) answer(want.request)
      trace.push(`${want.outcome} ${want.slot.sample}`)
      plan.lease(want.slot)
      const copy = plan.release(want.slot)
      if (copy) plan.settleCopy(copy)
      if (options.prefixCount > 0) trace.push(`cur ${carry.size(epoch)} nex ${carry.size(epoch + 1)}`)
    }
  }
  return trace
}
