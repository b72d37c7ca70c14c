import type { LeasedBatch } from '../stream/leased-batch.js'
import type { Hello } from './hello.js'

/** Time per batch over consecutive batches, and how much it varied. */
export interface Pace {
  readonly batches: number
  readonly secondsPerBatch: number
  /** Difference between the two halves of the measurement, relative to the whole: 0.02 = 2 %. */
  readonly noise: number
}

/** Pace of a rank's worker with real data, and with data that is free. */
export interface WorkerHeadspace {
  readonly rank: number
  readonly worker: number
  readonly asItIs: Pace
  readonly free: Pace
}

interface HeadspaceOptions {
  /** Number of batches to measure for each worker, in either way. */
  readonly batches: number
  /** Number of batches of each worker before measuring, while caches fill and compilers run. */
  readonly warmup: number
}

/** Number of batches of each worker that are handed out repeatedly and stay in memory, beside those it holds. */
export const REPLAYED_BATCHES = 2

/**
 * Measures how much faster training would be if data were free. It measures how fast each worker takes its batches,
 * then hands out the same batches from memory repeatedly, and measures again. The training done during that time is
 * useless.
 */
export class HeadspaceProbe {
  readonly #options: HeadspaceOptions
  readonly #workers = new Map<string, WorkerProbe>()
  /** Pids of all processes that ever took batches. */
  readonly pids = new Set<number>()
  readonly #finished = Promise.withResolvers<void>()

  constructor(options: HeadspaceOptions) {
    this.#options = options
  }

  /** Resolves once every worker that ever connected has been measured. */
  get finished(): Promise<void> {
    return this.#finished.promise
  }

  /** Returns the probe of a worker, the same one when it returns for another epoch. `pid`: the worker's process. */
  ofWorker(name: Pick<Hello, 'rank' | 'reader' | 'worker' | 'pid'>): WorkerProbe {
    this.pids.add(name.pid)
    const key = JSON.stringify([name.rank, name.reader, name.worker])
    const found = this.#workers.get(key) ?? new WorkerProbe(name, this.#options, () => this.#check())
    this.#workers.set(key, found)
    return found
  }

  /** Lists the workers measured in both ways. */
  list(): readonly WorkerHeadspace[] {
    return [...this.#workers.values()].flatMap((worker) => worker.describe() ?? [])
  }

  /** Number of batches delivered so far to the slowest worker. */
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

/** Decides which batches one worker gets, and when. */
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
  /** Number of deliveries left to skip in the measurement, while the reader still has batches in hand. */
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
   * Begins a pass of `owner`, in which the worker may hold `depth` batches. Returns the batches that are no longer
   * handed out; the caller releases them.
   */
  begin(owner: object, depth: number): readonly LeasedBatch[] {
    this.#owner = owner
    this.#lastMs = undefined // time between two passes says nothing about data
    this.#depth = depth
    this.#settling = Math.max(this.#settling, depth)
    return this.#cached.splice(0)
  }

  /** Ends the owner's pass. Returns batches as `begin` does; none if another pass has begun. */
  end(owner: object): readonly LeasedBatch[] {
    return owner === this.#owner ? this.#cached.splice(0) : []
  }

  /** Returns the batch to hand out at `step` instead of reading one; undefined: read one. */
  replay(epoch: number, step: number): LeasedBatch | undefined {
    if (!this.#isFree || this.#cached.length < REPLAYED_BATCHES) return undefined
    const replayed = { ...this.#cached[this.#delivered % REPLAYED_BATCHES]!, epoch, step }
    this.#replays.add(replayed)
    return replayed
  }

  /** Whether the batch stays in memory after the worker gives it back. */
  keeps(batch: LeasedBatch): boolean {
    return this.#cached.includes(batch) || this.#replays.has(batch)
  }

  /** Records that the batch leaves for the worker. */
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

  /** Undefined unless measured in both ways. */
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
