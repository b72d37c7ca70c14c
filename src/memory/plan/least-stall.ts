import { findFirst } from '../../model/find-first.js'
import type { MemoryProfile } from '../step/profile.js'
import type { Timeline } from '../step/timeline.js'
import type { Candidate } from './candidates.js'
import { emptyAsPossible } from './choose-moves.js'

/**
 * Number of events examined: those with the least room for maps that could be away, and those furthest over the budget.
 */
const MAX_EVENTS = 128

/** The properties of a step under a budget that its stall depends on. */
interface StallProblem {
  readonly profile: Pick<MemoryProfile, 'device'>
  readonly step: { readonly timeline: Pick<Timeline, 'startUs'> }
  readonly liveBytes: readonly number[]
  readonly budgetBytes: number
  readonly candidates: readonly Candidate[]
}

/** An unavoidable wait before some event later than `after` and up to `until`. */
interface Wait {
  readonly after: number
  readonly until: number
  readonly us: number
}

/**
 * A stall that no plan within this budget can avoid, in microseconds. At an event, at most `room` bytes of the storages
 * that could be away can be on the device, in whole storages. So all others made since some earlier event must have
 * left through the queue out in between, and all others used until some later event must come back through the queue
 * in. Waits between different events add up.
 */
export function findLeastStallUs(problem: StallProblem): number {
  const { candidates } = problem
  const { startUs } = problem.step.timeline
  const { d2hGBs, h2dGBs } = problem.profile.device
  const floor = emptyAsPossible(problem.liveBytes, candidates)
  const leaving = candidates.filter(({ outUs }) => outUs > 0).sort((a, b) => b.outAfter - a.outAfter)
  const returning = candidates.filter(({ inUs }) => inUs > 0).sort((a, b) => a.useAt - b.useAt)
  const waits: Wait[] = []
  for (const { event, room } of pickEvents(problem, (at) => problem.budgetBytes - floor.highest(at, at))) {
    const isAway = ({ outAfter, useAt }: Candidate) => outAfter < event && event < useAt
    const outs = findWaits(leaving.filter(isAway), room, ({ outAfter }, bytes) => {
      const us = bytes / (d2hGBs * 1e3) - (startUs[event]! - startUs[outAfter + 1]!)
      return { after: outAfter, until: event, us }
    })
    const ins = findWaits(returning.filter(isAway), room, ({ useAt }, bytes) => {
      const us = bytes / (h2dGBs * 1e3) - (startUs[useAt]! - startUs[event + 1]!)
      return { after: event, until: useAt, us }
    })
    waits.push(...outs, ...ins)
  }
  return sumDisjoint(waits)
}

/** One wait per beginning (nearest first) that makes it longer; what `room` can hold of them needs no copy. */
function findWaits(
  nearestFirst: readonly Candidate[],
  room: number,
  toWait: (furthest: Candidate, copiedBytes: number) => Wait,
): Wait[] {
  const waits: Wait[] = []
  let bytes = 0
  let longestUs = 0
  const staying = new MostStaying(room)
  for (const candidate of nearestFirst) {
    bytes += candidate.bytes
    staying.add(candidate.bytes)
    const wait = toWait(candidate, bytes - staying.mostBytes)
    if (wait.us > longestUs) {
      longestUs = wait.us
      waits.push(wait)
    }
  }
  return waits
}

/** With more different sums the room is so much larger than the storages that it may count as filled. */
const MAX_SUMS = 64

/** Most bytes of whole storages that fit into `room`, or a little more: a storage stays as a whole or not at all. */
class MostStaying {
  readonly #room: number
  readonly #sums = new Set([0])
  #most = 0

  constructor(room: number) {
    this.#room = room
  }

  get mostBytes(): number {
    return this.#most
  }

  add(bytes: number): void {
    if (this.#most === this.#room) return
    for (const sum of [...this.#sums]) {
      if (sum + bytes > this.#room) continue
      this.#sums.add(sum + bytes)
      this.#most = Math.max(this.#most, sum + bytes)
    }
    if (this.#sums.size > MAX_SUMS) this.#most = this.#room
  }
}

/** The largest sum of waits of which no two are before the same event. */
function sumDisjoint(waits: Wait[]): number {
  const byEnd = waits.sort((a, b) => a.until - b.until || a.after - b.after)
  const bestUs = [0] // over the first waits by end
  byEnd.forEach(({ after, us }, at) => {
    const before = findFirst(at, (other) => byEnd[other]!.until > after)
    bestUs.push(Math.max(bestUs[at]!, bestUs[before]! + us))
  })
  return bestUs.at(-1)!
}

function pickEvents(
  { liveBytes, budgetBytes }: StallProblem,
  roomAt: (event: number) => number,
): { event: number; room: number }[] {
  const over = liveBytes.flatMap((bytes, event) =>
    bytes > budgetBytes ? [{ event, room: roomAt(event), bytes }] : [],
  )
  const narrow = over.toSorted((a, b) => a.room - b.room || a.event - b.event).slice(0, MAX_EVENTS)
  const full = over.toSorted((a, b) => b.bytes - a.bytes || a.event - b.event).slice(0, MAX_EVENTS)
  return [...new Set([...narrow, ...full])]
}
