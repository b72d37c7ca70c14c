import type { StatusSnapshot } from './compose-status.js'

/** Bytes written at various times, oldest first, per copy. */
export type ProgressHistory = ReadonlyMap<string, readonly ProgressSample[]>

interface ProgressSample {
  readonly atMs: number
  readonly writtenBytes: number
}

/** Window over which a rate is the mean, in ms: stagers report in steps, and a shorter one would jump. */
const WINDOW_MS = 15_000

/** Time without a byte after which a download counts as stalled, in ms; until then its rate is unknown. */
const STALL_MS = 12_000

/** Adds a snapshot to the history and forgets copies that are no longer being staged. */
export function noteProgress(
  history: ProgressHistory,
  snapshot: Pick<StatusSnapshot, 'takenAtMs' | 'transfers'>,
): ProgressHistory {
  return new Map(
    snapshot.transfers.map((transfer) => {
      const sample = { atMs: snapshot.takenAtMs, writtenBytes: transfer.writtenBytes }
      const before = history.get(transfer.copyId) ?? []
      const last = before.at(-1)
      // Less than before: the stager restarted.
      if (last && last.writtenBytes > sample.writtenBytes) return [transfer.copyId, [sample]]
      if (last && last.atMs === sample.atMs) return [transfer.copyId, before]
      const recent = before.filter((old) => old.atMs >= sample.atMs - WINDOW_MS)
      return [transfer.copyId, [...recent, sample]]
    }),
  )
}

/** Bytes per second over the window, 0 = stalled; undefined if too little is known. */
export function findRate(history: ProgressHistory, copyId: string): number | undefined {
  const samples = history.get(copyId)
  const first = samples?.[0]
  const last = samples?.at(-1)
  if (!first || !last) return undefined
  const spanMs = last.atMs - first.atMs
  const bytes = last.writtenBytes - first.writtenBytes
  if (spanMs < 1000 || (bytes === 0 && spanMs < STALL_MS)) return undefined
  return (bytes * 1000) / spanMs
}

/** Milliseconds until `remainingBytes` are written at this rate; undefined if the rate is unknown or 0. */
export function estimateLeftMs(
  remainingBytes: number,
  bytesPerSecond: number | undefined,
): number | undefined {
  if (bytesPerSecond === undefined || bytesPerSecond <= 0) return undefined
  return (remainingBytes * 1000) / bytesPerSecond
}
