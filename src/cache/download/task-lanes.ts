import type { Urgency } from '../../model/urgency.js'
import type { ByteRange } from '../arrivals/block-set.js'
import type { Need } from '../arrivals/order-of-need.js'

/** One thing to fetch: an object, or bytes of one part of an object that was begun. */
export interface FetchTask {
  /** Of the object, in the manifest. */
  readonly id: number
  readonly key: string
  /** Where the part begins. */
  readonly partOffset: number
  readonly range: ByteRange
  /** How many of them it fetches: none where it begins an object that has several parts. */
  readonly bytes: number
  readonly run: (urgency: Urgency) => Promise<void>
  /** Takes it when its turn has come; false: it was handed out as a more urgent one meanwhile. Absent: nobody else has it. */
  readonly claim?: () => boolean
}

/** A task that is taken, for which lane and how urgently. */
export interface TakenTask {
  readonly task: FetchTask
  readonly lane: Lane
  readonly urgency: Urgency
}

/** `direct`: answered as soon as it is asked for. `awaited`: another node is still fetching it. */
export type Lane = 'direct' | 'awaited'

export const LANES: readonly Lane[] = ['direct', 'awaited']

interface TaskLanesOptions {
  /** Takes the next of those that are so urgent. */
  readonly take: Readonly<Record<Urgency, () => FetchTask | undefined>>
  readonly isAwaited: (task: FetchTask) => boolean
  /** A clock, ms. */
  readonly nowMs: () => number
}

/** No more tasks than this stand in a lane that is full, but for those that somebody waits for. */
const MAX_STANDING = 1000
/** How long a task may stand in a lane that is no longer its own, ms. */
export const SORT_AGAIN_MS = 1000

/**
 * Sorts what is to be fetched into two lanes, so that nothing that can be had at once stands behind what another node
 * has yet to fetch: two nodes that wait for each other's objects both go on. Within a lane, the most urgent come first.
 */
export class TaskLanes {
  readonly #options: TaskLanesOptions
  /** Tasks that stand, by urgency. */
  #standing: Record<Urgency, Record<Lane, FetchTask[]>> = {
    wanted: { direct: [], awaited: [] },
    ordered: { direct: [], awaited: [] },
    listed: { direct: [], awaited: [] },
  }
  #sortedMs = Number.NEGATIVE_INFINITY

  constructor(options: TaskLanesOptions) {
    this.#options = options
  }

  /** The next task of one of the lanes that have room for what is so urgent; undefined: there is none at present. */
  next(free: Readonly<Record<Urgency, readonly Lane[]>>): TakenTask | undefined {
    const { take } = this.#options
    const { wanted } = this.#standing
    for (let task = take.wanted(); task; task = take.wanted()) wanted[this.#laneOf(task)].push(task)
    if (free.wanted.length === 0) return undefined
    this.#sortAgain()
    return (
      this.#takeStanding('wanted', free.wanted) ??
      this.#takeOf('ordered', free.ordered) ??
      this.#takeOf('listed', free.listed)
    )
  }

  /** Somebody waits for an object, or a range of one: it overtakes those that stand in its lane. */
  hurry(need: Need): void {
    // Asked for every sample that is waited for, of which most do not stand here any more.
    const isMeant = (task: FetchTask) => isOf(task, need)
    for (const urgency of ['ordered', 'listed'] as const)
      for (const lane of LANES) {
        const standing = this.#standing[urgency][lane]
        if (!standing.some(isMeant)) continue
        this.#standing.wanted[lane].push(...standing.filter(isMeant))
        this.#standing[urgency][lane] = standing.filter((task) => !isMeant(task))
      }
  }

  #takeOf(urgency: Urgency, free: readonly Lane[]): TakenTask | undefined {
    if (free.length === 0) return undefined
    const taken = this.#takeStanding(urgency, free)
    if (taken) return taken
    const standing = this.#standing[urgency]
    while (standing.direct.length + standing.awaited.length < MAX_STANDING) {
      const task = this.#options.take[urgency]()
      if (task === undefined) return undefined
      const lane = this.#laneOf(task)
      if (!free.includes(lane)) standing[lane].push(task)
      else if (tryClaim(task)) return { task, lane, urgency }
    }
    return undefined
  }

  /** Other nodes begin, and end: what waited for one of them may have to be fetched here by now. */
  #sortAgain(): void {
    const nowMs = this.#options.nowMs()
    if (nowMs - this.#sortedMs < SORT_AGAIN_MS) return
    this.#sortedMs = nowMs
    const { wanted, ordered, listed } = this.#standing
    this.#standing = { wanted: this.#sort(wanted), ordered: this.#sort(ordered), listed: this.#sort(listed) }
  }

  #sort({ direct, awaited }: Readonly<Record<Lane, readonly FetchTask[]>>): Record<Lane, FetchTask[]> {
    const sorted = Object.groupBy([...direct, ...awaited], (task) => this.#laneOf(task))
    return { direct: sorted.direct ?? [], awaited: sorted.awaited ?? [] }
  }

  /** The first task whose lane is free and still its own: a slot of one lane never waits for what the other is for. */
  #takeStanding(urgency: Urgency, free: readonly Lane[]): TakenTask | undefined {
    const queues = this.#standing[urgency]
    // Twice: what leaves the last lane for the first is found by the second look.
    for (const lane of [...free, ...free])
      for (let task = queues[lane].shift(); task; task = queues[lane].shift()) {
        const now = this.#laneOf(task)
        if (now !== lane) queues[now].push(task)
        else if (tryClaim(task)) return { task, lane, urgency }
      }
    return undefined
  }

  #laneOf(task: FetchTask): Lane {
    return this.#options.isAwaited(task) ? 'awaited' : 'direct'
  }
}

/** Whether it is this one's to run from now on. */
function tryClaim({ claim }: FetchTask): boolean {
  return claim === undefined || claim()
}

function isOf({ id, range }: FetchTask, need: Need): boolean {
  if (typeof need === 'number') return id === need
  const isBefore = range.offset + range.length <= need.offset
  return id === need.id && !isBefore && range.offset < need.offset + need.length
}
