import { useEffect, useEffectEvent } from 'react'
import type { MouseReporting } from '../mouse-reporting.js'
import type { MouseReport } from '../view/mouse/mouse-report.js'

/** Hears what the mouse does, as long as there is one. */
export function useMouse(mouse: MouseReporting | undefined, react: (report: MouseReport) => void): void {
  const tell = useEffectEvent(react)
  useEffect(() => {
    mouse?.on((report) => tell(report))
    return () => mouse?.off()
  }, [mouse])
}
