import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { Urgency } from '../../model/urgency.js'
import type { ByteBudget } from './byte-budget.js'
import type { ObjectDownload } from './object-download.js'
import type { Schedule, ScheduledWork } from './schedule.js'
import { LANES, type Lane, SORT_AGAIN_MS } from './task-lanes.js'
import { adaptConcurrency } from './transfer/adapt-concurrency.js'
import { BoundedRun } from './transfer/bounded-run.js'
import type { TransferEngine } from './transfer/transfer-task.js'

/** Limit for awaited objects, as a multiple of the usual requests: leaves room for them without flooding the link. */
const WANTED_SHARE = 1.5
/**
 * Requests that wait for other nodes, as a multiple of the request limit: less urgent ones leave room for wanted ones.
 */
const AWAITED_SHARE = { wanted: 2, ordered: 1, listed: 0.8 }

/** Keeps as many objects and parts under way as the source handles well, until all are fetched. */
export async function runSchedule(options: {
  readonly engine: TransferEngine
  readonly schedule: Schedule
  readonly download: ObjectDownload
  readonly budget: ByteBudget
  /** Whether enough is under way that no reader waits for. */
  readonly isSpent: () => boolean
  readonly concurrency: number
  readonly requestLimit?: (() => number) | undefined
  readonly signal: AbortSignal
  /** Aborted at the first failure. */
  readonly stop: AbortController
}): Promise<void> {
  const {
    engine,
    schedule,
    download,
    budget,
    isSpent,
    concurrency,
    requestLimit = () => concurrency,
  } = options
  const running: Record<Lane, number> = { direct: 0, awaited: 0 }
  let finished = 0
  const readCap = () => Math.max(1, Math.min(concurrency, requestLimit()))
  const adaptive = adaptConcurrency({
    engine,
    readCap,
    finishedTasks: () => finished,
    runningTasks: () => running.direct,
  })
  const limitOf = (lane: Lane, urgency: Urgency) => {
    if (lane === 'awaited') return Math.ceil(AWAITED_SHARE[urgency] * readCap())
    const usual = adaptive.current()
    if (urgency === 'wanted')
      return budget.isWantedSpent(performance.now())
        ? 0
        : Math.min(readCap(), Math.ceil(usual * WANTED_SHARE))
    return isSpent() ? 0 : usual
  }
  const freeFor = (urgency: Urgency) => LANES.filter((lane) => running[lane] < limitOf(lane, urgency))
  const run = new BoundedRun({
    concurrency: () => 3 * readCap(),
    next: () => {
      throwIfStopped(options.signal)
      // An awaited need does not queue behind parts of 16 MiB that began earlier.
      return schedule.next({
        wanted: freeFor('wanted'),
        ordered: freeFor('ordered'),
        listed: freeFor('listed'),
      })
    },
    run: async ({ work, bytes, lane, urgency }: ScheduledWork) => {
      const isDirect = lane === 'direct' // an object that another node is still fetching does not use the link
      running[lane] += 1
      const beganMs = performance.now()
      if (isDirect) budget.began(bytes, urgency)
      let isFetched = false
      const onFetched = () => {
        if (isFetched) return
        isFetched = true
        if (isDirect) budget.ended(bytes, urgency, performance.now() - beganMs)
        running[lane] -= 1
      }
      await download.run(work, urgency, () => {
        onFetched()
        run.look() // what is left keeps a processor busy, but not the link
      })
      onFetched()
      finished += 1
    },
    onFailure: (error) => options.stop.abort(error),
  })
  // All running tasks may be waiting for other nodes, and one of those may give up.
  const timer = setInterval(() => run.look(), SORT_AGAIN_MS)
  schedule.onHurry = () => run.look()
  try {
    await run.done
  } finally {
    clearInterval(timer)
    schedule.onHurry = () => {}
    adaptive.stop()
  }
}
