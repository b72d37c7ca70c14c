import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { readUseWait } from '../../model/use-wait.js'
import { DAY_MS, DAY_STEPS, type DayHistory, findFirstStep, traceDay } from './trace-day.js'

/** The kinds of events that `traceUses` needs, and, beside `DAY_EVENTS`, `traceNodes`. */
export const USE_EVENTS: readonly RecordEventKind[] = ['leased', 'refused', 'damaged']

/** Half hours of a day: the columns of `NodeDay`. */
export const HALF_HOURS = 48
const HALF_HOUR_MS = DAY_MS / HALF_HOURS
const STEP_MS = DAY_MS / DAY_STEPS

/** Uses of datasets over the day before now, in the steps of `DayHistory`; fewer where the events do not reach back so far. */
export interface UseHistory {
  /** The time that the steps cover, ms. */
  readonly spanMs: number
  readonly uses: readonly number[]
  /** Uses that found their dataset ready. */
  readonly hits: readonly number[]
  /** Mean number of jobs that waited. */
  readonly waiting: readonly number[]
  /** Most used first. */
  readonly datasets: readonly DatasetDay[]
}

/** A dataset over the day. */
export interface DatasetDay {
  readonly dataset: string
  readonly uses: number
  readonly hits: number
  readonly usesByHour: readonly number[]
}

/** A node over the day, in half hours, oldest first. */
export interface NodeDay {
  readonly node: string
  readonly receivedBytes: readonly number[]
  /** How long jobs waited there, added up, in ms. */
  readonly waitedMs: readonly number[]
  readonly refusals: readonly number[]
  readonly damages: readonly number[]
}

/** A job that is waiting now. */
interface PresentWait {
  readonly node: string
  readonly sinceMs: number
}

/**
 * Sums up who used what in the day before `nowMs`, from the record's `USE_EVENTS` in it. A job that got its dataset waited
 * from when it asked until it could read; `waits` are the jobs that have not got theirs. With `MAX_DAY_EVENTS` events the history
 * begins at the oldest of them.
 */
export function traceUses(
  events: readonly RecordEvent[],
  waits: readonly PresentWait[],
  nowMs: number,
): UseHistory {
  const fromMs = nowMs - DAY_MS
  const [uses, hits, waiting] = [zeros(DAY_STEPS), zeros(DAY_STEPS), zeros(DAY_STEPS)]
  const datasets = new Map<string, { uses: number; hits: number; usesByHour: number[] }>()
  for (const event of events) {
    const { kind, dataset, atMs, detail } = event
    if (kind !== 'leased' || atMs <= fromMs || atMs > nowMs) continue
    const step = stepOf(atMs - fromMs, STEP_MS, DAY_STEPS)
    const isHit = detail.isHit === true ? 1 : 0
    uses[step]! += 1
    hits[step]! += isHit
    const own = datasets.get(dataset) ?? { uses: 0, hits: 0, usesByHour: zeros(24) }
    datasets.set(dataset, own)
    own.uses += 1
    own.hits += isHit
    own.usesByHour[stepOf(atMs - fromMs, DAY_MS / 24, 24)]! += 1
    spread(waiting, { fromMs, stepMs: STEP_MS, ...waitOf(event) })
  }
  for (const { sinceMs } of waits) spread(waiting, { fromMs, stepMs: STEP_MS, sinceMs, untilMs: nowMs })
  const first = findFirstStep(events, nowMs)
  return {
    spanMs: (DAY_STEPS - first) * STEP_MS,
    uses: uses.slice(first),
    hits: hits.slice(first),
    waiting: waiting.slice(first).map((ms) => ms / STEP_MS),
    datasets: [...datasets]
      .map(([dataset, own]) => ({ dataset, ...own }))
      .sort((a, b) => b.uses - a.uses || (a.dataset < b.dataset ? -1 : 1)),
  }
}

/** Traces the bytes that each of `nodes` received in the day before `nowMs`, and the troubles there. */
export function traceNodes(
  nodes: readonly string[],
  events: readonly RecordEvent[],
  present: {
    readonly transfers: Parameters<typeof traceDay>[1]['transfers']
    readonly waits: readonly PresentWait[]
    readonly nowMs: number
  },
): readonly NodeDay[] {
  const { transfers, waits, nowMs } = present
  const fromMs = nowMs - DAY_MS
  const byNode = Map.groupBy(events, ({ node }) => node)
  return nodes.map((node) => {
    const own = byNode.get(node) ?? []
    const coming = transfers.filter((transfer) => transfer.node === node)
    const waitedMs = zeros(HALF_HOURS)
    const count = (wanted: RecordEventKind) => {
      const counts = zeros(HALF_HOURS)
      for (const { kind, atMs } of own)
        if (kind === wanted) counts[stepOf(atMs - fromMs, HALF_HOUR_MS, HALF_HOURS)]! += 1
      return counts
    }
    const rest = { fromMs, stepMs: HALF_HOUR_MS }
    for (const event of own) if (event.kind === 'leased') spread(waitedMs, { ...rest, ...waitOf(event) })
    for (const wait of waits)
      if (wait.node === node) spread(waitedMs, { ...rest, sinceMs: wait.sinceMs, untilMs: nowMs })
    const receivedBytes = sumHalfHours(traceDay(own, { copies: [], transfers: coming }, nowMs))
    return { node, receivedBytes, waitedMs, refusals: count('refused'), damages: count('damaged') }
  })
}

function sumHalfHours({ receivedBytesPerSecond }: DayHistory): readonly number[] {
  const sums = zeros(HALF_HOURS)
  const missing = DAY_STEPS - receivedBytesPerSecond.length
  for (const [at, rate] of receivedBytesPerSecond.entries())
    sums[Math.floor((missing + at) / (DAY_STEPS / HALF_HOURS))]! += (rate * STEP_MS) / 1000
  return sums
}

function zeros(length: number): number[] {
  return new Array<number>(length).fill(0)
}

function waitOf(event: RecordEvent): { readonly sinceMs: number; readonly untilMs: number } {
  const { askedAtMs, readAtMs } = readUseWait(event)
  return { sinceMs: askedAtMs, untilMs: readAtMs }
}

function stepOf(sinceMs: number, stepMs: number, steps: number): number {
  return Math.min(steps - 1, Math.max(0, Math.floor(sinceMs / stepMs)))
}

/** Adds the time from `sinceMs` to `untilMs` to each step that it overlaps, in ms, times `weight` (default 1). */
export function spread(
  sums: number[],
  time: {
    readonly fromMs: number
    readonly stepMs: number
    readonly sinceMs: number
    readonly untilMs: number
    readonly weight?: number
  },
): void {
  const { fromMs, stepMs, untilMs, weight = 1 } = time
  const sinceMs = Math.max(fromMs, time.sinceMs)
  if (untilMs <= sinceMs) return
  const last = stepOf(untilMs - fromMs, stepMs, sums.length)
  for (let step = stepOf(sinceMs - fromMs, stepMs, sums.length); step <= last; step += 1) {
    const beginMs = fromMs + step * stepMs
    sums[step]! += weight * Math.max(0, Math.min(untilMs, beginMs + stepMs) - Math.max(sinceMs, beginMs))
  }
}
