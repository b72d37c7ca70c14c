import { useCallback, useEffect, useRef, useState } from 'react'
import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import type { StatusReader } from '../../cache/status/status-reader.js'
import { NO_THROUGHPUT, noteThroughput, type Throughput } from '../../cache/status/throughput.js'
import { type WatchIntervals, watchStatus } from '../../cache/status/watch-status.js'
import type { ReadProblem } from '../view/screen-input.js'

/** The current view of the record. The last snapshot stays while the record is not readable. */
interface StatusView {
  readonly snapshot: StatusSnapshot | undefined
  readonly problem: ReadProblem | undefined
  readonly throughput: Throughput
  /** Reads immediately instead of at the next change or interval. */
  readonly refresh: () => void
}

type Known = Omit<StatusView, 'refresh'>

/** Follows the record, except while paused. */
export function useStatus(
  reader: StatusReader,
  options: { readonly intervals: WatchIntervals; readonly nowMs: () => number; readonly isPaused: boolean },
): StatusView {
  const { intervals, nowMs, isPaused } = options
  const [known, setKnown] = useState<Known>({
    snapshot: undefined,
    problem: undefined,
    throughput: NO_THROUGHPUT,
  })
  const wake = useRef<() => void>(() => {})

  useEffect(() => {
    if (isPaused) return
    const watch = watchStatus(reader, intervals, {
      show: (snapshot) =>
        setKnown((before) => ({
          snapshot,
          problem: undefined,
          throughput: noteThroughput(before.throughput, snapshot),
        })),
      // Show any error of the record, and retry.
      fail: (error) => {
        const message = error instanceof Error ? error.message : String(error)
        setKnown((before) => ({
          ...before,
          problem: { message, sinceMs: before.problem?.sinceMs ?? nowMs() },
        }))
      },
    })
    wake.current = watch.refresh
    return watch.stop
  }, [reader, intervals, nowMs, isPaused])

  const refresh = useCallback(() => wake.current(), [])
  return { ...known, refresh }
}
