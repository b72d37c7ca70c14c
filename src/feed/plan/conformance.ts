import { createArenaPlan } from './arena-plan.js'
import { createCarryOver } from './carry-over.js'
import { planOrder } from './order.js'
import { planRankSequence, positionOfItem } from './rank-sequence.js'
import { nodeOfSample } from './sample-placement.js'
import type { SampleRequest } from './slot.js'
import { createStreamPlan } from './stream-plan.js'

/** A run of the two seeds' methods to the letter: one reader, one sample at a time, asking only on a miss. */
export interface ConformanceOptions {
  readonly sampleCount: number
  readonly seed: number
  readonly epochs: number
  readonly nodeCount: number
  /** Compute nodes; the trace is that of the first, which reads its share of each epoch. Default 1. */
  readonly world?: number
  readonly k: number
  /** Bytes of the prefetch space (seed 000). */
  readonly arenaBytes: number
  /** Samples of the prefix of S_next (seed 001); 0 leaves Cache_next out. */
  readonly prefixCount: number
  /** Bytes of a sample. */
  readonly lengthOf: (sample: number) => number
  readonly threshold: number
}

/** One line per thing that happens, for comparison with the reference models. */
export function traceConformance(options: ConformanceOptions): string[] {
  const { sampleCount, seed, epochs, nodeCount, lengthOf } = options
  const trace: string[] = []
  const totalLength = Array.from({ length: sampleCount }, (_, sample) => lengthOf(sample)).reduce(
    (a, b) => a + b,
    0,
  )
  const arena = createArenaPlan({
    totalBytes: options.arenaBytes + 2 * totalLength, // the top end (Cache_next, delivery) is a space of its own
    eviction: 'patent',
    threshold: options.threshold,
    moveChunkBytes: Number.POSITIVE_INFINITY,
    move: () => {},
    observer: {
      evicted: (run) => void trace.push(`evict ${run.map((extent) => extent.sample).join(' ')}`),
      moved: (run) => void trace.push(`move ${run.map((extent) => extent.sample).join(' ')}`),
    },
  })
  arena.setLimits({ bottomBytes: options.arenaBytes, topBytes: 2 * totalLength })
  const carry = createCarryOver(sampleCount)
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
  /** Nodes answer at once here, so that a sample is stored the moment it has room and may be moved by the next. */
  const storeAtOnce: typeof arena.reserveBottom = (...item) => {
    const extent = arena.reserveBottom(...item)
    if (extent) extent.state = 'ready'
    return extent
  }
  const plan = createStreamPlan({
    sequence,
    positionOf: (_, item) => positionOfItem(sequence, item),
    orderOf: (epoch) => orders[epoch],
    nodeCount,
    nodeOf: (sample, position) => nodeOfSample('striped', nodeCount, sample, position),
    extentBytesOf: lengthOf,
    arena: { ...arena, reserveBottom: storeAtOnce },
    carry,
    prefetchRoomBytes: () => Number.POSITIVE_INFINITY,
    carryBytes: () => Number.POSITIVE_INFINITY,
    isEachOnce: true,
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
    for (const slot of request.slots) plan.settle(slot, true)
    plan.finishRequest(request)
  }
  for (let epoch = 0; epoch < epochs; epoch++) {
    const next = orders[epoch + 1]!
    const samples = Array.from({ length: options.prefixCount }, (_, i) =>
      next.sampleAt(positionOfItem(sequence, i)),
    )
    carry.setPrefix(epoch + 1, samples)
    for (const unused of carry.forgetBefore(epoch)) arena.finish(unused)
    for (let item = 0; item < sequence.itemsPerEpoch; item++) {
      const want = plan.want(epoch * sequence.itemsPerEpoch + item)
      if (want.request) answer(want.request)
      trace.push(`${want.outcome} ${want.slot.sample}`)
      plan.lease(want.slot)
      const copy = plan.release(want.slot)
      if (copy) plan.settleCopy(copy, true)
      if (options.prefixCount > 0) trace.push(`cur ${carry.size(epoch)} nex ${carry.size(epoch + 1)}`)
    }
  }
  return trace
}
