/** How fast a download has been, and how long it still takes at this rate. */
export interface Pace {
  /** Bytes per second. */
  readonly rate: number
  /** Undefined while nothing arrives, and once everything has. */
  readonly leftMs: number | undefined
}

/** Measures the pace of a download over the last `spanMs`. Each call takes the time of a report, in ms, and the report. */
export function measurePace(
  spanMs: number,
): (atMs: number, progress: { readonly writtenBytes: number; readonly totalBytes: number }) => Pace {
  const samples: { readonly atMs: number; readonly bytes: number }[] = []
  return (atMs, { writtenBytes, totalBytes }) => {
    samples.push({ atMs, bytes: writtenBytes })
    while (samples.length > 2 && atMs - samples[0]!.atMs > spanMs) samples.shift()
    const first = samples[0]!
    const rate = ((writtenBytes - first.bytes) / Math.max(1, atMs - first.atMs)) * 1000
    const leftMs =
      rate > 0 && writtenBytes < totalBytes ? ((totalBytes - writtenBytes) / rate) * 1000 : undefined
    return { rate, leftMs }
  }
}
