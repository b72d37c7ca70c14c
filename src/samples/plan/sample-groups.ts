/** Groups of samples that are read as a whole. */
export interface SampleGroups {
  /** Behind the last sample of each; all samples are in one. In shared memory. */
  readonly ends: Float64Array
  /** Groups that are open at a time, 1 or more. */
  readonly window: number
}

/** Memory that open groups aim for, bytes; and the fewest that are shuffled into each other. */
const OPEN_BYTES = 256 * 2 ** 20
const FEWEST_OPEN = 4

/** The groups that are open at a time where nobody says: the same on every machine, for it depends on the data only. */
export function chooseWindow(totalBytes: number, groupCount: number): number {
  const fitting = Math.floor(OPEN_BYTES / Math.max(1, totalBytes / groupCount))
  return Math.min(groupCount, Math.max(FEWEST_OPEN, fitting))
}
