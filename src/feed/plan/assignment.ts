import { DscError } from '../../failure/dsc-error.js'
import { BoundedMap } from '../../model/bounded-map.js'
import { nodeOfSample, type SamplePlacement } from '../../samples/plan/sample-placement.js'
import type { EpochOrder } from './order.js'
import { positionOfItem, type RankSequence } from './rank-sequence.js'

/**
 * Who gets which sample of a global batch.
 * `fixed`: rank r its r-th slice, whatever the storage.
 * `local`: the machine that stores a sample, as far as equal shares allow. The batch as a set stays the same.
 */
export const ASSIGN_RULES = ['fixed', 'local'] as const
/** By what rule the ranks share a batch. */
export type AssignRule = (typeof ASSIGN_RULES)[number]

/** The position in an epoch's order of a rank's item. */
export type ItemPositions = (order: EpochOrder, item: number) => number

/** Whose items they are, by which rule, and where the samples lie. */
export interface AssignmentOptions {
  readonly sequence: RankSequence
  readonly rule: AssignRule
  /** Its storage nodes are, for `local`, the machines of the job, in the order of their ranks. */
  readonly placed: SamplePlacement
}

/** Steps whose assignment is remembered: those that are read, and those that are looked ahead to. */
const STEPS_REMEMBERED = 64

/** Finds positions under the rule. Throws USAGE where `local` means nothing. */
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
 * Deals the places 0 … of a batch out to machines, `shareCount` to each: first to the machine that holds the place's
 * sample while its share lasts, then what is left to whoever lacks some, in order. Each share is in order of places.
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
