/** Steps of the ranks of one feed in blocks, from which a report finds how long ranks of other nodes waited for them. */
export interface StepBlocks {
  /** Steps in a block, a power of two: blocks of feeds that note at other times can be merged. */
  readonly size: number
  /** Blocks by their number, which is that of their first step divided by `size`. */
  readonly blocks: readonly StepBlock[]
  /** Causes of the waits in them, such as `disk of rank 3`, in ms. */
  readonly causes: Readonly<Record<string, number>>
}

/** The number of a block, its steps, and how long their last ranks waited for a batch and went on from there, in ms. */
export type StepBlock = readonly [at: number, steps: number, waitedMs: number, restMs: number]

/** Most blocks that one event keeps: 2 KiB, and steps of two seconds each by itself. */
export const MAX_BLOCKS = 128
/** Most causes that one event keeps, largest first. */
export const MAX_CAUSES = 8

/** The smallest size with which steps `from` to `to` (exclusive) lie in at most `MAX_BLOCKS` blocks. */
export function chooseBlockSize(from: number, to: number): number {
  let size = 1
  while (Math.ceil(to / size) - Math.floor(from / size) > MAX_BLOCKS) size *= 2
  return size
}

/** Reads the blocks of an event; undefined if it has none. */
export function readStepBlocks(raw: unknown): StepBlocks | undefined {
  return typeof raw === 'object' && raw !== null && 'blocks' in raw ? (raw as StepBlocks) : undefined
}
