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
  readonly run: () => Promise<void>
}

/** `direct`: answered as soon as it is asked for. `awaited`: another node is still fetching it. */
export type Lane = 'direct' | 'awaited'

interface TaskLanesOptions {
  /** Takes the next object that somebody waits for. */
  readonly takeWanted: () => FetchTask | undefined
  /** Takes the next of all others. */
  readonly takeNext: () => FetchTask | undefined
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
 * has yet to fetch: two nodes that wait for each other's objects both go on. Within a lane, objects that somebody waits
 * for come first.
 */
export class TaskLanes {
  readonly #options: TaskLanesOptions
  #wanted: Record<Lane, FetchTask[]> = { direct: [], awaited: [] }
  #standing: Record<Lane, FetchTask[]> = { direct: [], awaited: [] }

  #sortedMs = Number.NEGATIVE_INFINITY

  constructor(options: TaskLanesOptions) {
    this.#options = options
  }

  /**
   * The next task of one of the lanes that have room; undefined: there is none at present. `freeForWanted`: those that
   * have room for what somebody waits for.
   */
  next(
    free: readonly Lane[],
    freeForWanted: readonly Lane[] = free,
  ): { readonly task: FetchTask; readonly lane: Lane } | undefined {
    const { takeWanted, takeNext } = this.#options
    for (let task = takeWanted(); task; task = takeWanted()) this.#wanted[this.#laneOf(task)].push(task)
    if (freeForWanted.length === 0) return undefined
    this.#sortAgain()
    const taken = this.#takeFrom(this.#wanted, freeForWanted) ?? this.#takeFrom(this.#standing, free)
    if (taken || free.length === 0) return taken
    while (this.#standing.direct.length + this.#standing.awaited.length < MAX_STANDING) {
      const task = takeNext()
      if (task === undefined) return undefined
      const lane = this.#laneOf(task)
      if (free.includes(lane)) return { task, lane }
      this.#standing[lane].push(task)
    }
    return undefined
  }

  /** Somebody waits for an object, or a range of one: it overtakes those that stand in its lane. */
  hurry(need: Need): void {
    for (const lane of ['direct', 'awaited'] as const) {
      const standing = this.#standing[lane]
      // Asked for every sample that is waited for, of which most do not stand here any more.
      const isMeant = (task: FetchTask) => isOf(task, need)
      if (!standing.some(isMeant)) continue
      this.#wanted[lane].push(...standing.filter(isMeant))
      this.#standing[lane] = standing.filter((task) => !isMeant(task))
    }
  }

  /** Other nodes begin, and end: what waited for one of them may have to be fetched here by now. */
  #sortAgain(): void {
    const nowMs = this.#options.nowMs()
    if (nowMs - this.#sortedMs < SORT_AGAIN_MS) return
    this.#sortedMs = nowMs
    this.#wanted = this.#sort(this.#wanted)
    this.#standing = this.#sort(this.#standing)
  }

  #sort({ direct, awaited }: Readonly<Record<Lane, readonly FetchTask[]>>): Record<Lane, FetchTask[]> {
    const sorted = Object.groupBy([...direct, ...awaited], (task) => this.#laneOf(task))
    return { direct: sorted.direct ?? [], awaited: sorted.awaited ?? [] }
  }

  /** The first task whose lane is free and still its own: a slot of one lane never waits for what the other is for. */
  #takeFrom(queues: Readonly<Record<Lane, FetchTask[]>>, free: readonly Lane[]) {
    // Twice: what leaves the last lane for the first is found by the second look.
    for (const lane of [...free, ...free])
      for (let task = queues[lane].shift(); task; task = queues[lane].shift()) {
        const now = this.#laneOf(task)
        if (now === lane) return { task, lane }
        queues[now].push(task)
      }
    return undefined
  }

  #laneOf(task: FetchTask): Lane {
    return this.#options.isAwaited(task) ? 'awaited' : 'direct'
  }
}

function isOf({ id, range }: FetchTask, need: Need): boolean {
  if (typeof need === 'number') return id === need
  const isBefore = range.offset + range.length <= need.offset
  return id === need.id && !isBefore && range.offset < need.offset + need.length
}
