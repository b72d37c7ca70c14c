import { findFirst } from '../../model/find-first.js'
import type { Timeline } from '../step/timeline.js'
import type { Candidate } from './candidates.js'
import { LiveCurve } from './live-curve.js'

/** Copies start earlier than their measured time requires, by this factor. */
const EARLINESS = 1.2

/** A candidate with its times: absent from the device from event `freeBy` to event `inAt` − 1. */
export interface ScheduledMove extends Candidate {
  /** The copy out must have ended before this event; the executor waits for it there. */
  readonly freeBy: number
  /** When this event begins, its memory is allocated again and the copy in starts. */
  readonly inAt: number
}

/** Limits of a schedule, besides the moves. */
export interface ScheduleLimits {
  readonly liveBytes: readonly number[]
  readonly budgetBytes: number
  /** Finished copies out free their memory when an event would exceed this: room to bring others back early. */
  readonly aimBytes: number
  /** Most bytes that may be back early or in use in reload slots at once; undefined: only the budget counts. */
  readonly reloadCapBytes?: number | undefined
  /** Whether every reload gets memory of its own, even if one arena would fit. */
  readonly isSlotted?: boolean | undefined
  /** Extra earliness of a storage's copy in, in microseconds, learned from a run. */
  readonly latenessUs?: ReadonlyMap<number, number> | undefined
}

/**
 * Decides when copies out must have ended and when copies in begin. Waits for copies out as late as the budget permits;
 * starts copies in as late as one copy queue permits, and later still when memory is short. By construction no event
 * exceeds the budget, however long copies really take.
 */
export function scheduleMoves(
  timeline: Timeline,
  picks: readonly Candidate[],
  limits: ScheduleLimits,
): ScheduledMove[] {
  const { freeBy, startUs } = scheduleOuts(timeline, picks, limits)
  const moves = picks
    .map((pick, at) => ({ pick, freeBy: freeBy[at]! }))
    .filter(({ pick, freeBy: event }) => event < pick.useAt)
    .sort((a, b) => a.pick.useAt - b.pick.useAt || a.pick.lifetime.storage - b.pick.lifetime.storage)
  return fitIns(timeline, findLatestIns(moves, startUs, limits.latenessUs), limits)
}

/**
 * Runs the step with copies in one queue out; if an event does not fit the budget, it waits for the oldest copies.
 * Finished copies free their memory earlier, at an event that holds more than the aim.
 */
function scheduleOuts(
  timeline: Timeline,
  picks: readonly Candidate[],
  limits: ScheduleLimits,
): { freeBy: number[]; startUs: number[] } {
  const count = timeline.events.length
  const freeBy = new Array<number>(picks.length).fill(count + 1)
  const outsAfter = Map.groupBy(picks.keys(), (at) => picks[at]!.outAfter)
  const returnsAt = Map.groupBy(picks.keys(), (at) => picks[at]!.useAt)
  const queue: { at: number; doneUs: number }[] = []
  let head = 0
  let nowUs = 0
  let queueFreeUs = 0
  let absentBytes = 0
  const startUs: number[] = []
  const enqueue = (event: number) => {
    for (const at of outsAfter.get(event) ?? []) {
      if (event === -1) {
        freeBy[at] = 0
        absentBytes += picks[at]!.bytes
        continue
      }
      if (picks[at]!.outUs > 0) queueFreeUs = Math.max(nowUs, queueFreeUs) + picks[at]!.outUs
      queue.push({ at, doneUs: picks[at]!.outUs > 0 ? queueFreeUs : nowUs })
    }
  }
  enqueue(-1)
  for (let event = 0; event < count; event++) {
    for (const at of returnsAt.get(event) ?? []) {
      if (freeBy[at]! <= event) absentBytes -= picks[at]!.bytes
    }
    while (limits.liveBytes[event]! - absentBytes > limits.aimBytes && head < queue.length) {
      const { at, doneUs } = queue[head]!
      if (doneUs > nowUs && limits.liveBytes[event]! - absentBytes <= limits.budgetBytes) break
      head += 1
      if (picks[at]!.useAt <= event) continue // needed again before memory ran short: it may as well stay
      nowUs = Math.max(nowUs, doneUs)
      freeBy[at] = event
      absentBytes += picks[at]!.bytes
    }
    startUs.push(nowUs)
    nowUs += timeline.events[event]!.durationUs
    enqueue(event)
  }
  startUs.push(nowUs)
  return { freeBy, startUs }
}

/** A move whose copy out is scheduled. */
interface Returning {
  readonly pick: Candidate
  readonly freeBy: number
}

/** A move whose copy in must begin at `latestIn` to be in time. */
interface Timed extends Returning {
  readonly latestIn: number
}

/** Walks back from the last use: the latest event at which each copy in may begin and still be in time. */
function findLatestIns(
  moves: readonly Returning[],
  startUs: readonly number[],
  latenessUs: ReadonlyMap<number, number> | undefined,
): Timed[] {
  const count = startUs.length - 1
  const latest = new Array<number>(moves.length).fill(count)
  let queueStartUs = Number.POSITIVE_INFINITY
  for (let at = moves.length - 1; at >= 0; at--) {
    const { pick, freeBy } = moves[at]!
    if (pick.useAt >= count) continue
    const lateUs = latenessUs?.get(pick.lifetime.storage) ?? 0
    const finishUs = Math.min(startUs[pick.useAt]!, queueStartUs)
    queueStartUs = finishUs - EARLINESS * pick.inUs - lateUs
    const beginUs = queueStartUs
    const started = findFirst(pick.useAt + 1, (at) => startUs[at]! > beginUs) - 1
    const event = Math.max(started, freeBy, 0)
    latest[at] = Math.min(event, pick.useAt)
  }
  return moves.map((move, at) => ({ ...move, latestIn: latest[at]! }))
}

/** First needed, first served: each copy in begins at its latest event, or later where the bytes do not fit. */
function fitIns(timeline: Timeline, moves: readonly Timed[], limits: ScheduleLimits): ScheduledMove[] {
  const count = timeline.events.length
  const live = new LiveCurve(limits.liveBytes)
  const reload = new LiveCurve(new Array<number>(count).fill(0))
  for (const { pick, freeBy } of moves) {
    live.add(freeBy, pick.useAt - 1, -pick.bytes)
    if (pick.lifetime.kind === 'feature') reload.add(pick.useAt, pick.lifetime.to, pick.bytes)
  }
  return moves.map(({ pick, freeBy, latestIn }): ScheduledMove => {
    let inAt = latestIn
    const last = Math.min(pick.useAt, count) - 1
    if (pick.useAt < count) {
      const full = live.lastAbove(inAt, last, limits.budgetBytes - pick.bytes)
      if (full >= 0) inAt = full + 1
      if (limits.reloadCapBytes !== undefined && pick.lifetime.kind === 'feature') {
        const crowded = reload.lastAbove(inAt, last, limits.reloadCapBytes - pick.bytes)
        if (crowded >= 0) inAt = crowded + 1
      }
      // Executors move parameters where a layer begins.
      if (pick.lifetime.kind !== 'feature' && timeline.events[inAt]?.phase === 'bwd_feat') {
        inAt = Math.min(inAt + 1, pick.useAt)
      }
      live.add(inAt, last, pick.bytes)
      if (pick.lifetime.kind === 'feature') reload.add(inAt, last, pick.bytes)
    }
    return { ...pick, freeBy, inAt }
  })
}
