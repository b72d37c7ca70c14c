import { useEffect, useMemo, useState } from 'react'
import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { type DayHistory, traceDay } from '../../cache/status/trace-day.js'
import type { RecordEvent } from '../../model/record-event.js'

/** How often the events of the day are read again, ms: its steps are five minutes long. */
const AGAIN_MS = 60_000

/** The last 24 hours: events are read rarely, downloads under way come from the snapshot. */
export function useDay(
  readDay: () => Promise<readonly RecordEvent[]>,
  snapshot: StatusSnapshot | undefined,
): DayHistory | undefined {
  const [events, setEvents] = useState<readonly RecordEvent[]>()
  useEffect(() => {
    let isStopped = false
    const read = () =>
      readDay().then(
        (found) => {
          if (!isStopped) setEvents(found)
        },
        // The title shows this error through the status reader.
        () => {},
      )
    void read()
    const timer = setInterval(() => void read(), AGAIN_MS)
    return () => {
      isStopped = true
      clearInterval(timer)
    }
  }, [readDay])
  return useMemo(
    () => (events && snapshot ? traceDay(events, snapshot, snapshot.takenAtMs) : undefined),
    [events, snapshot],
  )
}
