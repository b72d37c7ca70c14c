import { useEffect, useEffectEvent } from 'react'
import type { MouseReporting } from '../mouse-reporting.js'
import type { MouseReport } from '../view/mouse/mouse-report.js'

/** Listens to the mouse while reporting is on. */
export function useMouse(mouse: MouseReporting | undefined, react: (report: MouseReport) => void): void {
  const tell = useEffectEvent(react)
  useEffect(() => {
    mouse?.on((report) => tell(report))
    return () => mouse?.off()
  }, [mouse])
}
