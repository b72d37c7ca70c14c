import { parseCulprit, readFedTime, sumWaits } from '../../model/fed-time.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { DAY_MS, DAY_STEPS, findFirstStep } from './trace-day.js'
import { spread } from './trace-uses.js'

/** The kinds of events that `traceStalls` needs. */
export const STALL_EVENTS: readonly RecordEventKind[] = ['fed']

const STEP_MS = DAY_MS / DAY_STEPS

/** How training spent the day before now, in the steps of `DayHistory`; fewer where the events do not reach back so far. */
export interface StallHistory {
  /** The time that the steps cover, ms. */
  readonly spanMs: number
  /** GPU-milliseconds of training in each step, waits included. */
  readonly gpuMs: readonly number[]
  /** GPU-milliseconds in which it waited. */
  readonly waitedGpuMs: readonly number[]
  /** The cause of the longest wait, as in `FedTime.waits` but of all ranks together; null if there was none. */
  readonly culprit: string | null
}

/** Sums up how training spent the day before `nowMs`, from the record's `STALL_EVENTS` in it. */
export function traceStalls(events: readonly RecordEvent[], nowMs: number): StallHistory {
  const fromMs = nowMs - DAY_MS
  const [gpuMs, waitedGpuMs] = [0, 0].map(() => new Array<number>(DAY_STEPS).fill(0)) as [number[], number[]]
  const culprits = new Map<string, number>()
  for (const event of events) {
    const time = readFedTime(event)
    const stretch = { fromMs, stepMs: STEP_MS, sinceMs: event.atMs - time.sinceAgoMs, untilMs: event.atMs }
    const perMs = 1 / Math.max(1, time.sinceAgoMs)
    spread(gpuMs, { ...stretch, weight: time.gpuMs * perMs })
    spread(waitedGpuMs, { ...stretch, weight: sumWaits(time.waits) * perMs })
    for (const [name, ms] of Object.entries(time.waits)) {
      const { culprit } = parseCulprit(name)
      culprits.set(culprit, (culprits.get(culprit) ?? 0) + ms)
    }
  }
  const first = findFirstStep(events, nowMs)
  const [longest] = [...culprits].sort(([, a], [, b]) => b - a)
  return {
    spanMs: (DAY_STEPS - first) * STEP_MS,
    gpuMs: gpuMs.slice(first).map(Math.round),
    waitedGpuMs: waitedGpuMs.slice(first).map(Math.round),
    culprit: longest?.[0] ?? null,
  }
}
