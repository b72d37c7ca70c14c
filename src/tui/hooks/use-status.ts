import { useCallback, useEffect, useRef, useState } from 'react'
import type { StatusSnapshot } from '../../stage/plan/compose-status.js'
import type { StatusReader } from '../../stage/status-reader.js'
import type { ReadProblem } from '../view/screen-frame.js'
import { noteProgress, type ProgressHistory } from '../view/transfer-rates.js'

/** What is known of the record at present. The last snapshot stays while the record cannot be read. */
export interface StatusView {
  readonly snapshot: StatusSnapshot | undefined
  readonly problem: ReadProblem | undefined
  readonly history: ProgressHistory
  /** Reads now instead of at the next interval. */
  readonly refresh: () => void
}

/** Share of the time that reading may take, so that keys are answered while the record is large or slow. */
const READ_SHARE = 0.2

type Known = Omit<StatusView, 'refresh'>

/** Reads the record every `intervalMs`, one read at a time; not while paused. */
export function useStatus(
  reader: StatusReader,
  options: { readonly intervalMs: number; readonly nowMs: () => number; readonly isPaused: boolean },
): StatusView {
  const { intervalMs, nowMs, isPaused } = options
  const [known, setKnown] = useState<Known>({ snapshot: undefined, problem: undefined, history: new Map() })
  const wake = useRef<() => void>(() => {})

  useEffect(() => {
    if (isPaused) return
    let isStopped = false
    let timer: NodeJS.Timeout | undefined
    let isReading = false
    let isWanted = false
    const read = async () => {
      if (isReading) {
        isWanted = true
        return
      }
      isReading = true
      isWanted = false
      clearTimeout(timer)
      const startedMs = performance.now()
      try {
        const snapshot = await reader.read()
        if (!isStopped) {
          setKnown((before) => ({
            snapshot,
            problem: undefined,
            history: noteProgress(before.history, snapshot),
          }))
        }
      } catch (error) {
        // Whatever the record says: it is shown, and the next interval tries again.
        const message = error instanceof Error ? error.message : String(error)
        if (!isStopped) {
          setKnown((before) => ({
            ...before,
            problem: { message, sinceMs: before.problem?.sinceMs ?? nowMs() },
          }))
        }
      }
      isReading = false
      const tookMs = performance.now() - startedMs
      if (!isStopped) timer = setTimeout(read, isWanted ? 0 : Math.max(intervalMs, tookMs / READ_SHARE))
    }
    wake.current = () => void read()
    void read()
    return () => {
      isStopped = true
      clearTimeout(timer)
    }
  }, [reader, intervalMs, nowMs, isPaused])

  const refresh = useCallback(() => wake.current(), [])
  return { ...known, refresh }
}
