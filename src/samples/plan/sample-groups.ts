/** Groups of samples, each read as a whole. */
export interface SampleGroups {
  /** End of each group's samples; every sample is in one group. In shared memory. */
  readonly ends: Float64Array
  /** Number of groups open at a time, 1 or more. */
  readonly window: number
}

/** Target memory of open groups, in bytes; and the minimum number to shuffle together. */
const OPEN_BYTES = 256 * 2 ** 20
const FEWEST_OPEN = 4

/** Default number of groups open at a time: the same on every machine, as it depends only on the data. */
export function chooseWindow(totalBytes: number, groupCount: number): number {
  const fitting = Math.floor(OPEN_BYTES / Math.max(1, totalBytes / groupCount))
  return Math.min(groupCount, Math.max(FEWEST_OPEN, fitting))
}
