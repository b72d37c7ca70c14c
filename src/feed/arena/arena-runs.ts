/** Samples that are neighbors in the arena, so that one write covers them all. */
interface ArenaRun {
  /** Index of the first sample, and number of samples. */
  readonly first: number
  count: number
  /** Where the run begins in the arena, and its length, in bytes. */
  readonly start: number
  length: number
}

/** Alignment of an extent, in bytes: a cache line, which suits every tensor type. */
const ALIGN_BYTES = 64

/** Bytes that a sample of `length` takes in the arena. */
export function planExtentBytes(length: number): number {
  return Math.max(1, Math.ceil(length / ALIGN_BYTES)) * ALIGN_BYTES
}

/** Maximum number of extents to keep metadata room for: the pages take no memory, but a system may count them. */
const MAX_EXPECTED_EXTENTS = 2 ** 22

/** Number of extents to expect at once, each sample at most twice: read, and kept for the next epoch. */
export function expectExtents(arenaBytes: number, { count }: { readonly count: number }): number {
  return Math.min(Math.floor(arenaBytes / ALIGN_BYTES), 2 * count, MAX_EXPECTED_EXTENTS)
}

/** Mean and largest room that samples of a table take in the arena, in bytes. */
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

/** Largest gap between neighbors, in bytes: the padding that aligns an extent. Nothing reads it. */
export const MAX_GAP_BYTES = ALIGN_BYTES - 1

/**
 * Splits samples into runs, in order. A run ends where the next sample is no neighbor, or where it would grow past
 * `maxBytes`. A longer sample is a run of its own.
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
