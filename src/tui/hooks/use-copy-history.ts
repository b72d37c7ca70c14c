import { useEffect, useState } from 'react'
import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import type { CopyUse } from '../../model/copy.js'
import type { RecordEvent } from '../../model/record-event.js'

/** Cursor keys that repeat faster than this skip the history of the copies they pass. */
const SETTLE_MS = 120

/** Reads the events of the displayed copy, again after each new event; undefined while unknown. */
export function useCopyHistory(
  readHistory: (copyId: string) => Promise<readonly RecordEvent[]>,
  copy: CopyUse | undefined,
  snapshot: StatusSnapshot | undefined,
): readonly RecordEvent[] | undefined {
  const [known, setKnown] = useState<{ copyId: string; events: readonly RecordEvent[] }>()
  const copyId = copy?.copyId
  const newest = snapshot?.events[0]?.sequence
  // biome-ignore lint/correctness/useExhaustiveDependencies: `newest` is why the history is read again
  useEffect(() => {
    if (copyId === undefined) return
    let isStopped = false
    const timer = setTimeout(() => {
      readHistory(copyId).then(
        (events) => {
          if (!isStopped) setKnown({ copyId, events })
        },
        // The title shows this error through the status reader.
        () => {},
      )
    }, SETTLE_MS)
    return () => {
      isStopped = true
      clearTimeout(timer)
    }
  }, [readHistory, copyId, newest])
  return known && known.copyId === copyId ? known.events : undefined
}
