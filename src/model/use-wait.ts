import type { RecordEvent } from './record-event.js'

/** For how long a task waited until it could read a dataset, in ms. */
export interface UseWait {
  /** Until the copy was ready; 0: it was there. */
  readonly readyMs: number
  /** Until the first sample was read, if that was during the download. */
  readonly readMs?: number | undefined
}

/** The part of a `leased` event's detail that keeps a wait. */
export function describeUseWait({ readyMs, readMs = readyMs }: UseWait) {
  const waitedMs = Math.min(readMs, readyMs)
  return { isHit: readyMs === 0, waitedMs, ...(waitedMs < readyMs && { readyMs }) }
}

/** Reads what `describeUseWait` wrote: when the task asked and when it could read, Unix epoch in ms. */
export function readUseWait({ atMs, detail }: Pick<RecordEvent, 'atMs' | 'detail'>) {
  const { waitedMs, readyMs } = detail as Readonly<Record<string, unknown>>
  const waited = typeof waitedMs === 'number' ? waitedMs : 0
  const askedAtMs = atMs - (typeof readyMs === 'number' ? readyMs : waited)
  return { askedAtMs, readAtMs: askedAtMs + waited }
}
