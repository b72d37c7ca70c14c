import { useEffect, useState } from 'react'

/** Redraws every `intervalMs`, so that times advance while nothing else happens. */
export function useTick(intervalMs: number): void {
  const [, setTicks] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
}
