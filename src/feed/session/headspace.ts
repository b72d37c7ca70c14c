import type { LeasedBatch } from '../stream/leased-batch.js'

/** How long batches took, one after the other, and how much that changed in the meantime. */
export interface Pace {
  readonly batches: number
  readonly secondsPerBatch: number
  /** By how much the two halves of the measurement differ, as a part of the whole: 0.02 = 2 %. */
  readonly noise: number
}

/** A worker of a rank: how fast it takes batches as they come, and as fast as it can. */
export interface WorkerHeadspace {
  readonly rank: number
  readonly worker: number
  readonly asItIs: Pace
  readonly free: Pace
}

interface HeadspaceOptions {
  /** Batches of each worker that are measured, in either way. */
  readonly batches: number
  /** Batches of each worker that come before, while caches fill and compilers run. */
  readonly warmup: number
}

/** Batches of each worker that are handed out again and again, and stay in memory beside what it holds. */
export const REPLAYED_BATCHES = 2

/**
 * Finds out how much faster training would be if data were free: measures how fast each worker takes its batches, then
 * hands out batches that lie in memory again and again, and measures anew. What training learns meanwhile is of no use.
 */
export class HeadspaceProbe {
  readonly #options: HeadspaceOptions
  readonly #workers = new Map<string, WorkerProbe>()
  /** Of all processes that ever took batches. */
  readonly pids = new Set<number>()
  readonly #finished = Promise.withResolvers<void>()

  constructor(options: HeadspaceOptions) {
    this.#options = options
  }

  /** Resolves once every worker that ever came has been measured. */
  get finished(): Promise<void> {
    return this.#finished.promise
  }

  /** The probe of a worker; the same one when it comes back for another epoch. `pid`: the process that it is. */
  ofWorker(name: {
    readonly rank: number
    readonly reader: string
    readonly worker: number
    readonly pid: number
  }): WorkerProbe {
    this.pids.add(name.pid)
    const key = JSON.stringify([name.rank, name.reader, name.worker])
    const found = this.#workers.get(key) ?? new WorkerProbe(name, this.#options, () => this.#check())
    this.#workers.set(key, found)
    return found
  }

  /** Those that were measured in both ways. */
  list(): readonly WorkerHeadspace[] {
    return [...this.#workers.values()].flatMap((worker) => worker.describe() ?? [])
  }

  /** Batches that the slowest worker has had so far. */
  get leastDelivered(): number {
    return Math.min(
      ...[...this.#workers.values()].map(({ delivered }) => delivered),
      Number.POSITIVE_INFINITY,
    )
  }

  #check(): void {
    if ([...this.#workers.values()].every((worker) => worker.isDone)) this.#finished.resolve()
  }
}

/** What is handed out to one worker, and when. */
export class WorkerProbe {
  readonly #name: { readonly rank: number; readonly worker: number }
  readonly #options: HeadspaceOptions
  readonly #onDone: () => void
  readonly #asItIs: number[] = []
  readonly #free: number[] = []
  readonly #replays = new WeakSet<LeasedBatch>()
  readonly #cached: LeasedBatch[] = []
  #owner: object | undefined
  #lastMs: number | undefined
  /** Deliveries that are not measured: the reader has batches in hand yet. */
  #settling: number
  #depth = 0
  #delivered = 0

  constructor(
    name: { readonly rank: number; readonly worker: number },
    options: HeadspaceOptions,
    onDone: () => void,
  ) {
    this.#name = name
    this.#options = options
    this.#onDone = onDone
    this.#settling = options.warmup
  }

  get isDone(): boolean {
    return this.#free.length >= this.#options.batches
  }

  get delivered(): number {
    return this.#delivered
  }

  /**
   * A pass of `owner` begins, in which the worker may hold `depth` batches. Returns the batches that are not handed out
   * any more: they are the caller's to release.
   */
  begin(owner: object, depth: number): readonly LeasedBatch[] {
    this.#owner = owner
    this.#lastMs = undefined // what lies between two passes is no matter of data
    this.#depth = depth
    this.#settling = Math.max(this.#settling, depth)
    return this.#cached.splice(0)
  }

  /** The owner leaves. Returns as `begin` does; nothing where another pass has begun. */
  end(owner: object): readonly LeasedBatch[] {
    return owner === this.#owner ? this.#cached.splice(0) : []
  }

  /** The batch to hand out at `step` instead of reading one; undefined: one is to be read. */
  replay(epoch: number, step: number): LeasedBatch | undefined {
    if (!this.#isFree || this.#cached.length < REPLAYED_BATCHES) return undefined
    const replayed = { ...this.#cached[this.#delivered % REPLAYED_BATCHES]!, epoch, step }
    this.#replays.add(replayed)
    return replayed
  }

  /** Whether the batch stays in memory when the worker gives it back. */
  keeps(batch: LeasedBatch): boolean {
    return this.#cached.includes(batch) || this.#replays.has(batch)
  }

  /** The batch leaves for the worker. */
  note(batch: LeasedBatch, nowMs: number): void {
    this.#delivered += 1
    const sinceMs = this.#lastMs
    this.#lastMs = nowMs
    if (this.#isFree && !this.#replays.has(batch)) {
      this.#cached.push(batch)
      this.#settling = this.#depth
      return
    }
    if (this.#settling > 0) this.#settling -= 1
    else if (sinceMs !== undefined && !this.isDone) this.#add(nowMs - sinceMs)
  }

  /** Undefined: it was not measured in both ways. */
  describe(): WorkerHeadspace | undefined {
    if (!this.isDone) return undefined
    const { rank, worker } = this.#name
    return { rank, worker, asItIs: measurePace(this.#asItIs), free: measurePace(this.#free) }
  }

  get #isFree(): boolean {
    return this.#asItIs.length >= this.#options.batches
  }

  #add(tookMs: number): void {
    ;(this.#isFree ? this.#free : this.#asItIs).push(tookMs)
    if (this.isDone) this.#onDone()
  }
}

function measurePace(tookMs: readonly number[]): Pace {
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
  const half = tookMs.length >> 1
  const whole = mean(tookMs)
  const noise = half === 0 ? 0 : Math.abs(mean(tookMs.slice(0, half)) - mean(tookMs.slice(half)))
  return {
    batches: tookMs.length,
    secondsPerBatch: whole / 1000,
    noise: whole === 0 ? 0 : noise / whole,
  }
}
