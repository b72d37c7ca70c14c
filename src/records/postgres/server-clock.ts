/** The server's clock, shared by all nodes however wrong their own clocks are. */
export interface ServerClock {
  /** The server's current time, Unix epoch in ms. */
  readonly nowMs: () => number
  /** Notes that the server just reported `serverMs`. */
  readonly set: (serverMs: number) => void
}

/** Runs evenly even when the system clock is changed. (The first use of `performance` loads modules for 2 ms.) */
const elapsedMs = () => process.uptime() * 1000

/** A clock that runs on from the server's last report; before the first report it is this machine's. */
export function createServerClock(): ServerClock {
  let aheadMs = Date.now() - elapsedMs()
  return {
    nowMs: () => Math.round(elapsedMs() + aheadMs),
    set: (serverMs) => {
      aheadMs = serverMs - elapsedMs()
    },
  }
}
