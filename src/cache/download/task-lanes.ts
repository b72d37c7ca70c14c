import type { Urgency } from '../../model/urgency.js'
import type { ByteRange } from '../arrivals/block-set.js'
import { idOf, type Need } from '../arrivals/order-of-need.js'

/** One thing to fetch: an object, or bytes of one part of an opened object. */
export interface LaneTask {
  /** Id of the object in the manifest. */
  readonly id: number
  readonly key: string
  /** Offset of the part. */
  readonly partOffset: number
  readonly range: ByteRange
  /** Number of bytes it fetches; 0 if it only opens an object that has several parts. */
  readonly bytes: number
  /** Its place among the tasks that readers wait for; absent: behind those that stand there already. */
  readonly turn?: number | undefined
  /**
   * Claims the task when its turn comes; false: a more urgent one took it first. Absent: no other task competes for it.
   */
  readonly claim?: () => boolean
}

/** A taken task, with its lane and urgency. */
interface TakenTask<Task> {
  readonly task: Task
  readonly lane: Lane
  readonly urgency: Urgency
}

/** `direct`: the source answers at once. `awaited`: another node is still fetching it. */
export type Lane = 'direct' | 'awaited'

export const LANES: readonly Lane[] = ['direct', 'awaited']

interface TaskLanesOptions<Task> {
  /** Takes the next task of that urgency. */
  readonly take: Readonly<Record<Urgency, () => Task | undefined>>
  readonly isAwaited: (task: Task) => boolean
  /** A clock, in ms. */
  readonly nowMs: () => number
}

/** Maximum number of tasks queued in full lanes, apart from those that a reader waits for. */
const MAX_STANDING = 1000
/** How long a task may stay in the wrong lane, in ms. */
export const SORT_AGAIN_MS = 1000

/**
 * Sorts tasks into two lanes, so that no task that can run at once queues behind one that another node has yet to
 * fetch. Two nodes that wait for each other's objects both make progress. Within a lane, the most urgent come first.
 */
export class TaskLanes<Task extends LaneTask> {
  readonly #options: TaskLanesOptions<Task>
  /** Queued tasks, by urgency. */
  #standing: Record<Urgency, Record<Lane, Task[]>> = {
    wanted: { direct: [], awaited: [] },
    ordered: { direct: [], awaited: [] },
    listed: { direct: [], awaited: [] },
  }
  /** Number of queued tasks that no reader waits for, by object. */
  readonly #unhurried = new Map<number, number>()
  #sortedMs = Number.NEGATIVE_INFINITY

  constructor(options: TaskLanesOptions<Task>) {
    this.#options = options
  }

  /** The next task from a lane with room for its urgency; undefined if no lane has any at present. */
  next(free: Readonly<Record<Urgency, readonly Lane[]>>): TakenTask<Task> | undefined {
    const { take } = this.#options
    const { wanted } = this.#standing
    for (let task = take.wanted(); task; task = take.wanted()) enqueue(wanted[this.#laneOf(task)], task)
    if (free.wanted.length === 0) return undefined
    this.#sortAgain()
    return (
      this.#takeStanding('wanted', free.wanted) ??
      this.#takeOf('ordered', free.ordered) ??
      this.#takeOf('listed', free.listed)
    )
  }

  /** A reader waits for an object, or a range of one: its tasks overtake the others in their lane. */
  hurry(need: Need): void {
    // Called for every awaited sample, most of which are no longer queued here.
    if (!this.#unhurried.has(idOf(need))) return
    for (const urgency of ['ordered', 'listed'] as const)
      for (const lane of LANES) {
        const standing = this.#standing[urgency][lane]
        for (let at = standing.length - 1, to = this.#standing.wanted[lane].length; at >= 0; at -= 1) {
          if (!isOf(standing[at]!, need)) continue
          const [task] = standing.splice(at, 1)
          this.#standing.wanted[lane].splice(to, 0, task!)
          this.#left(task!)
        }
      }
  }

  #takeOf(urgency: Urgency, free: readonly Lane[]): TakenTask<Task> | undefined {
    if (free.length === 0) return undefined
    const taken = this.#takeStanding(urgency, free)
    if (taken) return taken
    const standing = this.#standing[urgency]
    while (standing.direct.length + standing.awaited.length < MAX_STANDING) {
      const task = this.#options.take[urgency]()
      if (task === undefined) return undefined
      const lane = this.#laneOf(task)
      if (!free.includes(lane)) {
        standing[lane].push(task)
        this.#unhurried.set(task.id, 1 + (this.#unhurried.get(task.id) ?? 0))
      } else if (tryClaim(task)) return { task, lane, urgency }
    }
    return undefined
  }

  /** Other nodes come and go: a task that awaited one of them may have to be fetched here by now. */
  #sortAgain(): void {
    const nowMs = this.#options.nowMs()
    if (nowMs - this.#sortedMs < SORT_AGAIN_MS) return
    this.#sortedMs = nowMs
    const { wanted, ordered, listed } = this.#standing
    this.#standing = { wanted: this.#sort(wanted), ordered: this.#sort(ordered), listed: this.#sort(listed) }
  }

  #sort({ direct, awaited }: Readonly<Record<Lane, readonly Task[]>>): Record<Lane, Task[]> {
    const sorted = Object.groupBy([...direct, ...awaited], (task) => this.#laneOf(task))
    return { direct: sorted.direct ?? [], awaited: sorted.awaited ?? [] }
  }

  /** The first task whose lane is free and still its own: a slot of one lane never waits for a task of the other. */
  #takeStanding(urgency: Urgency, free: readonly Lane[]): TakenTask<Task> | undefined {
    const queues = this.#standing[urgency]
    // Twice: the second pass finds tasks that moved from the last lane to the first.
    for (const lane of [...free, ...free])
      for (let task = queues[lane].shift(); task; task = queues[lane].shift()) {
        const now = this.#laneOf(task)
        if (now !== lane) {
          queues[now].push(task)
          continue
        }
        if (urgency !== 'wanted') this.#left(task)
        if (tryClaim(task)) return { task, lane, urgency }
      }
    return undefined
  }

  #left({ id }: Task): void {
    const others = this.#unhurried.get(id)! - 1
    if (others > 0) this.#unhurried.set(id, others)
    else this.#unhurried.delete(id)
  }

  #laneOf(task: Task): Lane {
    return this.#options.isAwaited(task) ? 'awaited' : 'direct'
  }
}

/** Queues a task that a reader waits for: parts of objects may be known long after a reader began to wait for them. */
function enqueue<Task extends LaneTask>(queue: Task[], task: Task): void {
  const { turn = Number.POSITIVE_INFINITY } = task
  let at = queue.length
  while (at > 0 && (queue[at - 1]!.turn ?? 0) > turn) at -= 1
  queue.splice(at, 0, task)
}

/** Whether the caller now owns the task. */
function tryClaim({ claim }: LaneTask): boolean {
  return claim === undefined || claim()
}

function isOf({ id, range }: LaneTask, need: Need): boolean {
  if (typeof need === 'number') return id === need
  const isBefore = range.offset + range.length <= need.offset
  return id === need.id && !isBefore && range.offset < need.offset + need.length
}
