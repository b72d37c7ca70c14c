/** The server's clock, which all nodes share however wrong their own are. */
export interface ServerClock {
  /** Unix epoch, ms, as the server would say now. */
  readonly nowMs: () => number
  /** Notes that the server just said `serverMs`. */
  readonly set: (serverMs: number) => void
}

/** Runs evenly whatever happens to the clock. (The first look at `performance` loads modules for 2 ms.) */
const elapsedMs = () => process.uptime() * 1000

/** A clock that runs on from what the server said last; before that it is this machine's. */
export function createServerClock(): ServerClock {
  let aheadMs = Date.now() - elapsedMs()
  return {
    nowMs: () => Math.round(elapsedMs() + aheadMs),
    set: (serverMs) => {
      aheadMs = serverMs - elapsedMs()
    },
  }
}
