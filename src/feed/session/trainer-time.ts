import { type FedTime, MAX_FED_WAITS } from '../../model/fed-time.js'
import { wholeNumber } from './hello.js'

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
}

export function parseTrainerTime(raw: Readonly<Record<string, unknown>>): TrainerTime {
  return {
    rank: wholeNumber(raw, 'rank'),
    gpus: Math.max(1, wholeNumber(raw, 'gpus', 1)),
    elapsedMs: wholeNumber(raw, 'elapsedMs'),
    feedMs: wholeNumber(raw, 'feedMs'),
    transformMs: wholeNumber(raw, 'transformMs'),
    startMs: wholeNumber(raw, 'startMs'),
  }
}

/** Adds up how the trainers of a feed spent their time, between two looks at it. */
export class TrainerTimes {
  readonly #nowMs: () => number
  #waits = new Map<string, number>()
  #gpusOfRanks = new Map<number, number>()
  #gpuMs = 0
  #beganAtMs = Number.POSITIVE_INFINITY

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /**
   * Adds what a trainer tells. `culprits`: how long the feed waited for whom since it told last, in ms. The feed reads
   * ahead, so it may have waited longer than its trainer; where it waited less, the rest is the feed's own work.
   */
  add(told: TrainerTime, culprits: ReadonlyMap<string, number>): void {
    const { rank, gpus, elapsedMs, feedMs, transformMs, startMs } = told
    this.#gpusOfRanks.set(rank, gpus)
    this.#gpuMs += gpus * elapsedMs
    this.#beganAtMs = Math.min(this.#beganAtMs, this.#nowMs() - elapsedMs)
    this.#wait('transform', gpus * transformMs)
    this.#wait('start', gpus * startMs)
    const knownMs = [...culprits.values()].reduce((sum, ms) => sum + ms, 0)
    const share = Math.min(1, feedMs / Math.max(1, knownMs))
    for (const [culprit, ms] of culprits) this.#wait(culprit, gpus * ms * share)
    this.#wait('feed', gpus * Math.max(0, feedMs - knownMs))
  }

  /** The sums since the last call; undefined if no trainer has told. */
  take(): FedTime | undefined {
    if (this.#gpusOfRanks.size === 0) return undefined
    const largest = [...this.#waits].sort(([, a], [, b]) => b - a).slice(0, MAX_FED_WAITS)
    const told = {
      sinceAgoMs: Math.round(this.#nowMs() - this.#beganAtMs),
      gpus: [...this.#gpusOfRanks.values()].reduce((sum, gpus) => sum + gpus, 0),
      gpuMs: this.#gpuMs,
      waits: Object.fromEntries(largest.map(([culprit, ms]) => [culprit, Math.round(ms)] as const)),
    }
    this.#waits = new Map()
    this.#gpusOfRanks = new Map()
    this.#gpuMs = 0
    this.#beganAtMs = Number.POSITIVE_INFINITY
    return told
  }

  #wait(culprit: string, gpuMs: number): void {
    if (gpuMs > 0) this.#waits.set(culprit, (this.#waits.get(culprit) ?? 0) + gpuMs)
  }
}
