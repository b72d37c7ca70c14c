import { type FedTime, MAX_FED_WAITS } from '../../model/fed-time.js'
import { HoldUps } from './hold-ups.js'

/** How one trainer spent its time since it told last, in ms. */
export interface TrainerTime {
  readonly rank: number
  /** GPUs that stand still while it waits. */
  readonly gpus: number
  readonly elapsedMs: number
  /** The part in which it waited for batches of the feed. */
  readonly feedMs: number
  /** The part in which it waited for the user's own transform and collate. */
  readonly transformMs: number
  /** The part in which it waited for the feed to start. */
  readonly startMs: number
  /** The part in which it waited for its workers, which wait for the feed or do the user's own work. */
  readonly loaderMs: number
  /** Its steps since it told last, if it counts them. */
  readonly steps?: StepTimes
}

/** Steps of a trainer, each from one request for a batch to the next. */
export interface StepTimes {
  /** Number of the first of them, from the first step of the trainer on. */
  readonly first: number
  readonly tookUs: readonly number[]
  /** The part of each in which the trainer waited for its batch. */
  readonly waitedUs: readonly number[]
}

/** How long the workers of a trainer took to make batches since they told last, in ms. */
export interface WorkerTime {
  readonly rank: number
  readonly madeMs: number
  /** The part in which they waited for the feed. */
  readonly waitedMs: number
}

/** Adds up how the trainers of a feed spent their time, between two looks at it. */
export class TrainerTimes {
  readonly #nowMs: () => number
  #waits = new Map<string, number>()
  #gpusOfRanks = new Map<number, number>()
  readonly #holdUps = new HoldUps()
  /** By rank: sums of its workers since its trainer told, or the sums used last. */
  readonly #made = new Map<number, WorkerTime & { readonly isUsed: boolean }>()
  #world = 1
  #gpuMs = 0
  #beganAtMs = Number.POSITIVE_INFINITY

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Adds what a worker tells, for the next that its trainer tells. */
  addMade({ rank, madeMs, waitedMs }: WorkerTime): void {
    const known = this.#made.get(rank)
    const before = known && !known.isUsed ? known : { madeMs: 0, waitedMs: 0 }
    const sums = { madeMs: before.madeMs + madeMs, waitedMs: before.waitedMs + waitedMs }
    this.#made.set(rank, { rank, ...sums, isUsed: false })
  }

  /**
   * Adds what a trainer tells. `culprits`: how long the feed waited for whom since it told last, in ms. The feed reads
   * ahead, so it may have waited longer than its trainer; where it waited less, the rest is the feed's own work.
   * `world`: ranks of the job, which may have other feeds.
   */
  add(told: TrainerTime, culprits: ReadonlyMap<string, number>, world = 1): void {
    const { rank, gpus, elapsedMs, startMs, loaderMs } = told
    const loaderFeedMs = loaderMs * this.#takeShare(rank)
    const feedMs = told.feedMs + loaderFeedMs
    const transformMs = told.transformMs + loaderMs - loaderFeedMs
    this.#world = world
    this.#gpusOfRanks.set(rank, gpus)
    this.#gpuMs += gpus * elapsedMs
    this.#beganAtMs = Math.min(this.#beganAtMs, this.#nowMs() - elapsedMs)
    const knownMs = [...culprits.values()].reduce((sum, ms) => sum + ms, 0)
    const share = Math.min(1, feedMs / Math.max(1, knownMs))
    const waits = [
      ['transform', transformMs],
      ['start', startMs],
      ...Array.from(culprits, ([culprit, ms]) => [culprit, ms * share] as const),
      ['feed', Math.max(0, feedMs - knownMs)],
    ] as const
    for (const [culprit, ms] of waits) this.#wait(culprit, gpus * ms)
    this.#holdUps.add(told, waits)
  }

  /** The sums since the last call; undefined if no trainer has told. */
  take(): FedTime | undefined {
    if (this.#gpusOfRanks.size === 0) return undefined
    const { holdUps, steps } = this.#holdUps.take(this.#world)
    for (const { culprit, gpuMs } of holdUps) this.#wait(culprit, gpuMs)
    const largest = [...this.#waits].sort(([, a], [, b]) => b - a).slice(0, MAX_FED_WAITS)
    const gpus = [...this.#gpusOfRanks.values()].reduce((sum, each) => sum + each, 0)
    const told = {
      // A report that arrives late reaches back further than its arrival says.
      sinceAgoMs: Math.ceil(Math.max(this.#nowMs() - this.#beganAtMs, this.#gpuMs / gpus)),
      gpus,
      gpuMs: this.#gpuMs,
      waits: Object.fromEntries(largest.map(([culprit, ms]) => [culprit, Math.round(ms)] as const)),
      ...(steps && { steps }),
    }
    this.#waits = new Map()
    this.#gpusOfRanks = new Map()
    this.#gpuMs = 0
    this.#beganAtMs = Number.POSITIVE_INFINITY
    return told
  }

  /** The share of the feed, 0 to 1, in the time that the workers of a rank take. */
  #takeShare(rank: number): number {
    const made = this.#made.get(rank)
    if (!made || made.madeMs === 0) return 0
    this.#made.set(rank, { ...made, isUsed: true })
    return Math.min(1, made.waitedMs / made.madeMs)
  }

  #wait(culprit: string, gpuMs: number): void {
    if (gpuMs > 0) this.#waits.set(culprit, (this.#waits.get(culprit) ?? 0) + gpuMs)
  }
}
