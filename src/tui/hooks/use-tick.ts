import { useEffect, useState } from 'react'

/** Draws again every `intervalMs`, so that times go on while nothing else happens. */
export function useTick(intervalMs: number): void {
  const [, setTicks] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
}
