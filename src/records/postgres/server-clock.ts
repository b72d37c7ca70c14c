/** The server's clock, which all nodes share however wrong their own are. */
export interface ServerClock {
  /** Unix epoch, ms, as the server would say now. */
  readonly nowMs: () => number
  /** Notes that the server just said `serverMs`. */
  readonly set: (serverMs: number) => void
}

/** A clock that runs on from what the server said last; before that it is this machine's. */
export function createServerClock(): ServerClock {
  let aheadMs = Date.now() - performance.now()
  return {
    nowMs: () => Math.round(performance.now() + aheadMs),
    set: (serverMs) => {
      aheadMs = serverMs - performance.now()
    },
  }
}
