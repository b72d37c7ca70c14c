import { nodeOfSample, type SamplePlacement } from '../../samples/plan/sample-placement.js'
import { type AssignmentOptions, type ItemPositions, planItemPositions } from '../plan/assignment.js'
import { countOfStep, type RankSequence } from '../plan/rank-sequence.js'
import type { EpochOrders } from './order-book.js'

/** One item of a rank's sequence. */
export interface RankItem {
  /** epoch · itemsPerEpoch + item. */
  readonly serial: number
  readonly epoch: number
  /** Position in the epoch's order; from the number of samples on it is padding. */
  readonly position: number
  readonly sample: number
  /** The storage node to ask. */
  readonly node: number
}

/** The samples of a batch, and the position in the epoch's order of each. */
export type BatchItems = { readonly samples: Uint32Array; readonly positions: readonly number[] }

interface RankItemsOptions extends AssignmentOptions {
  readonly orders: EpochOrders
  /** Whether each epoch visits each sample once, as it does without a mix. */
  readonly isEachOnce: boolean
}

/** Maps each item of a rank to its sample: the order of its epoch, dealt out to ranks, and the node of each sample. */
export class RankItems {
  readonly sequence: RankSequence
  readonly placed: SamplePlacement
  readonly isEachOnce: boolean
  /** In a form that another thread can take. */
  readonly assignment: AssignmentOptions
  readonly #orders: EpochOrders
  readonly #positionOf: ItemPositions
  /** Epoch → samples that it leaves out, of the last two: an epoch's order may be gone when the next one asks. */
  readonly #leftOut = new Map<number, ReadonlySet<number>>()

  constructor({ sequence, rule, placed, orders, isEachOnce }: RankItemsOptions) {
    this.sequence = sequence
    this.placed = placed
    this.isEachOnce = isEachOnce
    this.#orders = orders
    const { layout, nodeCount, placement } = placed
    this.assignment = { sequence, rule, placed: { layout, nodeCount, placement } }
    this.#positionOf = planItemPositions(this.assignment)
  }

  /** Whether this rank alone reads every sample. */
  get isAlone(): boolean {
    return this.isEachOnce && this.sequence.globalBatch === this.sequence.options.batchSize
  }

  epochOf(serial: number): number {
    return Math.floor(serial / this.sequence.itemsPerEpoch)
  }

  /** The item at `serial`, or undefined while the order of its epoch is being made. */
  find(serial: number): RankItem | undefined {
    const epoch = this.epochOf(serial)
    const order = this.#orders.find(epoch)
    if (!order) return undefined
    this.leftOutOf(epoch)
    const position = this.#positionOf(order, serial - epoch * this.sequence.itemsPerEpoch)
    const sample = order.sampleAt(position % this.sequence.options.sampleCount)
    return { serial, epoch, position, sample, node: nodeOfSample(this.placed, sample, position) }
  }

  /** The items of the batch at `step`, or undefined while the order of its epoch is being made. */
  findBatch(epoch: number, step: number): BatchItems | undefined {
    const order = this.#orders.find(epoch)
    if (!order) return undefined
    const { batchSize, sampleCount } = this.sequence.options
    const samples = new Uint32Array(countOfStep(this.sequence, step))
    const positions: number[] = []
    for (let i = 0; i < samples.length; i++) {
      const position = this.#positionOf(order, step * batchSize + i)
      positions.push(position)
      samples[i] = order.sampleAt(position % sampleCount)
    }
    return { samples, positions }
  }

  /** Returns the ids of `count` batches from `step` on, in order. */
  async idsOf(epoch: number, step: number, count: number): Promise<number[]> {
    const { batchSize, sampleCount } = this.sequence.options
    const order = await this.#orders.get(epoch)
    const first = step * batchSize
    const end = Math.min(first + count * batchSize, this.sequence.itemsPerEpoch)
    return Array.from({ length: Math.max(0, end - first) }, (_, i) =>
      order.sampleAt(this.#positionOf(order, first + i) % sampleCount),
    )
  }

  /** Samples that no rank reads in `epoch` because they do not fill a last batch. */
  leftOutOf(epoch: number): ReadonlySet<number> {
    const known = this.#leftOut.get(epoch)
    if (known) return known
    const samples = new Set<number>()
    const order = this.#orders.find(epoch)
    if (!order) return samples
    const { stepsPerEpoch, globalBatch, options } = this.sequence
    for (let position = stepsPerEpoch * globalBatch; position < options.sampleCount; position++)
      samples.add(order.sampleAt(position))
    this.#leftOut.set(epoch, samples)
    for (const old of this.#leftOut.keys()) if (old < epoch - 1) this.#leftOut.delete(old)
    return samples
  }
}
