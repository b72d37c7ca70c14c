import { DscError } from '../../failure/dsc-error.js'
import { BoundedMap } from '../../model/bounded-map.js'
import { nodeOfSample, type SamplePlacement } from '../../samples/plan/sample-placement.js'
import type { EpochOrder } from './order.js'
import { positionOfItem, type RankSequence } from './rank-sequence.js'

/**
 * How a global batch is assigned. The batch as a set stays the same.
 * `fixed`: rank r gets the r-th slice, regardless of the storage.
 * `local`: the machine that stores a sample gets it, as far as equal shares allow.
 */
export const ASSIGN_RULES = ['fixed', 'local'] as const
/** The rule by which ranks share a batch. */
export type AssignRule = (typeof ASSIGN_RULES)[number]

/** Returns the position in an epoch's order of a rank's item. */
export type ItemPositions = (order: EpochOrder, item: number) => number

/** The rank, the rule, and the location of the samples. */
export interface AssignmentOptions {
  readonly sequence: RankSequence
  readonly rule: AssignRule
  /** For `local`, its storage nodes are the machines of the job, in the order of their ranks. */
  readonly placed: SamplePlacement
}

/** Number of steps whose assignment is cached: those being read, and those looked ahead to. */
const STEPS_REMEMBERED = 64

/** Returns a function that finds positions under the rule. Throws USAGE if `local` does not apply. */
export function planItemPositions(options: AssignmentOptions): ItemPositions {
  const { sequence, rule, placed } = options
  const { nodeCount } = placed
  if (rule === 'fixed') return (_, item) => positionOfItem(sequence, item)
  const { batchSize, world, replicate, rank, sampleCount } = sequence.options
  const slices = world / replicate
  const isOnOneNode = placed.layout !== 'full'
  if (!isOnOneNode || slices % nodeCount !== 0)
    throw new DscError(
      'USAGE',
      isOnOneNode
        ? `assign 'local' needs equal shares: ${slices} slices of a batch do not divide among ${nodeCount} storage nodes`
        : "assign 'local' needs samples that lie on one node each, but every storage node holds all of them",
      { hint: "--layout striped with one storage node per machine, or assign 'fixed'" },
    )
  const shareCount = sequence.globalBatch / nodeCount
  const slice = Math.floor(rank / replicate)
  const machine = Math.floor(slice / (slices / nodeCount))
  const fromShare = (slice % (slices / nodeCount)) * batchSize
  const remembered = new BoundedMap<string, readonly number[]>(STEPS_REMEMBERED)

  const planPositions = (order: EpochOrder, step: number): readonly number[] => {
    const first = step * sequence.globalBatch
    const holders = Array.from({ length: sequence.globalBatch }, (_, i) =>
      nodeOfSample(placed, order.sampleAt(first + i), 0),
    )
    const share = planShares(holders, nodeCount, shareCount)[machine]!
    return share.slice(fromShare, fromShare + batchSize).map((i) => first + i)
  }
  const ownPositions = (order: EpochOrder, step: number) =>
    remembered.getOrMake(`${order.epoch}/${step}`, () => planPositions(order, step))
  return (order, item) => {
    const step = Math.floor(item / batchSize)
    const isWhole = (step + 1) * sequence.globalBatch <= sampleCount
    return isWhole ? ownPositions(order, step)[item - step * batchSize]! : positionOfItem(sequence, item)
  }
}

/**
 * Deals the places 0 … of a batch to machines, `shareCount` to each. A place goes to the machine that holds its sample
 * while that machine's share lasts; the rest fill the other shares, in order. Each share is sorted by place.
 */
export function planShares(
  holders: readonly number[],
  machineCount: number,
  shareCount: number,
): readonly (readonly number[])[] {
  const shares: number[][] = Array.from({ length: machineCount }, () => [])
  const left: number[] = []
  for (const [place, holder] of holders.entries()) {
    const share = shares[holder]!
    if (share.length < shareCount) share.push(place)
    else left.push(place)
  }
  let next = 0
  for (const share of shares) {
    while (share.length < shareCount && next < left.length) share.push(left[next++]!)
    share.sort((a, b) => a - b)
  }
  return shares
}
