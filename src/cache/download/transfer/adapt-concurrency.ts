import { planConcurrency, startConcurrency } from './plan-concurrency.js'
import type { TransferEngine } from './transfer-task.js'

const INTERVAL_MS = 200
/** Cost of one object besides its bytes, in bytes of equal cost. */
const OBJECT_BYTES = 64 * 1024

/** The number of requests at once, tuned while they run. */
interface AdaptiveConcurrency {
  readonly current: () => number
  readonly stop: () => void
}

/** Looks at the progress of `engine` five times a second and plans how many tasks to give it at once. */
export function adaptConcurrency(options: {
  readonly engine: Pick<TransferEngine, 'counts'>
  readonly readCap: () => number
  readonly finishedTasks: () => number
  readonly runningTasks: () => number
}): AdaptiveConcurrency {
  const { engine, readCap, finishedTasks, runningTasks } = options
  let state = startConcurrency(readCap())
  let before = { atMs: performance.now(), work: 0, throttled: 0 }
  const look = () => {
    const { receivedBytes, throttled } = engine.counts
    const work = receivedBytes + finishedTasks() * OBJECT_BYTES
    const atMs = performance.now()
    const next = planConcurrency(state, {
      rate: ((work - before.work) * 1000) / (atMs - before.atMs),
      throttled: throttled - before.throttled,
      isSaturated: runningTasks() >= state.limit,
      cap: readCap(),
    })
    state = next
    before = { atMs, work, throttled }
  }
  const timer = setInterval(look, INTERVAL_MS)
  return { current: () => Math.min(state.limit, readCap()), stop: () => clearInterval(timer) }
}
