import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'

/** Rules for samples that do not fill a last global batch. */
export const LAST_BATCH_RULES = ['drop', 'pad', 'uneven'] as const
/** How an incomplete last batch is handled. */
export type LastBatchRule = (typeof LAST_BATCH_RULES)[number]

/** How an epoch is split into batches, and which of them a rank gets. */
export interface RankOptions {
  readonly sampleCount: number
  /** Number of samples in one batch of one rank. */
  readonly batchSize: number
  /** Number of ranks in the job. */
  readonly world: number
  /** 0 to world − 1. */
  readonly rank: number
  /** This many consecutive ranks get the same samples (tensor parallelism). Default 1; divides `world`. */
  readonly replicate: number
  readonly last: LastBatchRule
}

/**
 * The items one rank receives, numbered 0 … itemsPerEpoch − 1 within an epoch. Global batch g covers positions [g·B,
 * (g+1)·B) of the epoch's order, regardless of the number of ranks; rank r takes its r-th slice.
 */
export interface RankSequence {
  readonly options: RankOptions
  /** B: number of samples in one batch of all ranks. */
  readonly globalBatch: number
  /** Number of steps of the job in one epoch; equal on all ranks. */
  readonly stepsPerEpoch: number
  /** Number of batches of this rank: `stepsPerEpoch`, or one less if `uneven` leaves it nothing at the end. */
  readonly batchesPerEpoch: number
  readonly itemsPerEpoch: number
}

/** Plans the epoch for one rank. Throws USAGE if it has not even one batch. */
export function planRankSequence(options: RankOptions): RankSequence {
  const { sampleCount, batchSize, world, rank, replicate, last } = options
  for (const [name, value] of Object.entries({ batchSize, world, replicate }))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new DscError('USAGE', `${name} must be a whole number of at least 1, not ${value}`)
  if (world % replicate !== 0)
    throw new DscError(
      'USAGE',
      `replicate ${replicate} does not divide the ${formatCount(world, 'rank')} of the job`,
    )
  if (!Number.isSafeInteger(rank) || rank < 0 || rank >= world)
    throw new DscError(
      'USAGE',
      `rank ${rank} is not one of the ${formatCount(world, 'rank')} 0 to ${world - 1}`,
    )
  const globalBatch = (batchSize * world) / replicate
  const fullSteps = Math.floor(sampleCount / globalBatch)
  const rest = sampleCount - fullSteps * globalBatch
  if (last === 'drop' || rest === 0) {
    if (fullSteps === 0)
      throw new DscError(
        'USAGE',
        `the dataset has ${formatCount(sampleCount, 'sample')}, fewer than one global batch of ${globalBatch}, so last 'drop' leaves none`,
        { hint: "a smaller batch size, or last 'pad'" },
      )
    const itemsPerEpoch = fullSteps * batchSize
    return { options, globalBatch, stepsPerEpoch: fullSteps, batchesPerEpoch: fullSteps, itemsPerEpoch }
  }
  const stepsPerEpoch = fullSteps + 1
  const slice = Math.floor(rank / replicate)
  const tail = last === 'pad' ? batchSize : Math.min(Math.max(rest - slice * batchSize, 0), batchSize)
  return {
    options,
    globalBatch,
    stepsPerEpoch,
    batchesPerEpoch: tail > 0 ? stepsPerEpoch : fullSteps,
    itemsPerEpoch: fullSteps * batchSize + tail,
  }
}

/** The position in the epoch's order of a rank's item; from `sampleCount` on it is padding (wraps to the start). */
export function positionOfItem(sequence: RankSequence, item: number): number {
  const { batchSize, rank, replicate } = sequence.options
  const step = Math.floor(item / batchSize)
  return step * sequence.globalBatch + Math.floor(rank / replicate) * batchSize + (item - step * batchSize)
}

/** Number of items in the rank's batch at `step`: the batch size, or fewer at an uneven end. */
export function countOfStep(sequence: RankSequence, step: number): number {
  const { batchSize } = sequence.options
  return Math.min(batchSize, Math.max(0, sequence.itemsPerEpoch - step * batchSize))
}

/** Number of the rank's batch, counted through all epochs, that has item `serial` (epoch · itemsPerEpoch + item). */
export function batchOfSerial(sequence: RankSequence, serial: number): number {
  const epoch = Math.floor(serial / sequence.itemsPerEpoch)
  const item = serial - epoch * sequence.itemsPerEpoch
  return epoch * sequence.batchesPerEpoch + Math.floor(item / sequence.options.batchSize)
}
