/** Samples whose places in the arena are neighbours, so that one write carries them all. */
interface ArenaRun {
  /** Index of the first sample, and the number of samples. */
  readonly first: number
  count: number
  /** Where the run begins in the arena, and how long it is, in bytes. */
  readonly start: number
  length: number
}

/** Bytes that an extent begins at a multiple of: a cache line, which every tensor type is content with. */
const ALIGN_BYTES = 64

/** Bytes that a sample of `length` takes in the arena. */
export function planExtentBytes(length: number): number {
  return Math.max(1, Math.ceil(length / ALIGN_BYTES)) * ALIGN_BYTES
}

/** No room is kept ready for the metadata of more extents: its pages take no memory, but a system may count them. */
const MAX_EXPECTED_EXTENTS = 2 ** 22

/** How many extents an arena may well have at once, each sample twice at most: read, and kept for the next epoch. */
export function expectExtents(arenaBytes: number, { count }: { readonly count: number }): number {
  return Math.min(Math.floor(arenaBytes / ALIGN_BYTES), 2 * count, MAX_EXPECTED_EXTENTS)
}

/** The mean and the largest room that samples of a table take in the arena, in bytes. */
export function planSampleRoom(samples: {
  readonly count: number
  readonly totalBytes: number
  readonly largestBytes: number
}): { readonly sampleBytes: number; readonly largestBytes: number } {
  const { count, totalBytes, largestBytes } = samples
  return {
    sampleBytes: Math.ceil(totalBytes / count) + ALIGN_BYTES / 2,
    largestBytes: planExtentBytes(largestBytes),
  }
}

/** Bytes that may lie between neighbours: what aligning an extent leaves over. Nobody reads them. */
export const MAX_GAP_BYTES = ALIGN_BYTES - 1

/**
 * Cuts samples into runs, in their order: a run ends where the next sample lies elsewhere, or where it would grow
 * past `maxBytes`. A longer sample is a run of its own.
 */
export function planArenaRuns(
  offsets: ArrayLike<number>,
  lengthOf: (index: number) => number,
  maxBytes: number,
): readonly ArenaRun[] {
  const runs: ArenaRun[] = []
  for (let i = 0; i < offsets.length; i++) {
    const run = runs.at(-1)
    const at = offsets[i]!
    const length = lengthOf(i)
    const gap = run ? at - (run.start + run.length) : -1
    if (run && gap >= 0 && gap <= MAX_GAP_BYTES && run.length + gap + length <= maxBytes) {
      run.count++
      run.length += gap + length
    } else runs.push({ first: i, count: 1, start: at, length })
  }
  return runs
}
