import { useEffect, useState } from 'react'
import type { ReportText } from '../view/screen-input.js'

/** Reads the report over the last `sinceMs`, once per request; undefined while it is being read. */
export function useReport(
  readReport: (sinceMs: number) => Promise<ReportText>,
  sinceMs: number | undefined,
): ReportText | undefined {
  const [known, setKnown] = useState<{ readonly sinceMs: number; readonly text: ReportText }>()
  useEffect(() => {
    if (sinceMs === undefined) return
    let isStopped = false
    const show = (text: ReportText) => {
      if (!isStopped) setKnown({ sinceMs, text })
    }
    readReport(sinceMs).then(show, (error: unknown) =>
      show(() => [`The report could not be read: ${error instanceof Error ? error.message : String(error)}`]),
    )
    return () => {
      isStopped = true
      setKnown(undefined)
    }
  }, [readReport, sinceMs])
  return known && known.sinceMs === sinceMs ? known.text : undefined
}
