import { type EpochOrder, type OrderData, openOrder, planOrder } from './order.js'

/** One dataset of a mix. Its samples follow those of the previous parts in the samples manifest. */
export interface MixPart {
  readonly name: string
  readonly sampleCount: number
  /** How often an epoch visits each of its samples: 1 once, 2.5 two or three times, 0.1 a tenth of them. 0 or more. */
  readonly times: number
}

/**
 * First epoch of the random stream that chooses samples for a fraction: far beyond any real epoch of a seed. Changing
 * it changes which samples resumed jobs see.
 */
const FIRST_CHOICE_EPOCH = 2 ** 40

interface Block {
  readonly start: number
  readonly firstSample: number
  readonly part: MixPart
  /** Visits of whole rounds; the chosen fraction follows. */
  readonly wholeCount: number
  readonly chosenCount: number
  readonly choose: (position: number) => number
}

/** Number of samples that an epoch of `parts` visits. */
export function countMixed(parts: readonly MixPart[]): number {
  return parts.reduce((sum, part) => sum + wholeCountOf(part) + chosenCountOf(part), 0)
}

const wholeCountOf = (part: MixPart): number => Math.floor(part.times) * part.sampleCount
const chosenCountOf = (part: MixPart): number =>
  Math.round((part.times - Math.floor(part.times)) * part.sampleCount)

/** The order of an epoch of a mix, or of one dataset. */
export function openMixedOrder(visits: OrderData, parts: readonly MixPart[] | undefined): EpochOrder {
  const order = openOrder(visits)
  return parts ? planMixedOrder(order, parts, visits.seed) : order
}

/**
 * Turns an order of the visits 0 … countMixed(parts) − 1 into an order of samples. Whole rounds visit every sample.
 * Samples take turns in a fraction, so that over the epochs all samples of a part are visited equally often.
 */
export function planMixedOrder(visits: EpochOrder, parts: readonly MixPart[], seed: number): EpochOrder {
  const blocks: Block[] = []
  let start = 0
  let firstSample = 0
  for (const [i, part] of parts.entries()) {
    const { sampleCount } = part
    const wholeCount = wholeCountOf(part)
    const chosenCount = chosenCountOf(part)
    const turns = planOrder({ sampleCount, seed, epoch: FIRST_CHOICE_EPOCH + i, kind: 'feistel6' })
    const choose = (place: number) => turns.sampleAt((visits.epoch * chosenCount + place) % sampleCount)
    blocks.push({ start, firstSample, part, wholeCount, chosenCount, choose })
    start += wholeCount + chosenCount
    firstSample += sampleCount
  }
  return {
    epoch: visits.epoch,
    sampleCount: visits.sampleCount,
    sampleAt(position) {
      const visit = visits.sampleAt(position)
      const block = blocks.findLast((each) => each.start <= visit && each.wholeCount + each.chosenCount > 0)!
      const place = visit - block.start
      return (
        block.firstSample +
        (place < block.wholeCount ? place % block.part.sampleCount : block.choose(place - block.wholeCount))
      )
    },
  }
}
