import type { TrainerTime } from './trainer-time.js'

/** At most so much is lost with a program that is killed, ms. */
const TELL_MS = 10_000

/** Until when this process has told its time, ms. Its feeds share it, or each would count all of the time. */
const told = { atMs: Number.NaN }

/** How a program that reads a feed spends its time. It tells its feed, which keeps the sums for `dsc report --job`. */
export class ReaderTime {
  readonly #options: ReaderTimeOptions
  #feedMs = 0

  constructor(options: ReaderTimeOptions) {
    this.#options = options
  }

  /** Counts the time until an answer of the feed. */
  async waitFor<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    const { nowMs } = this.#options
    const askedAtMs = nowMs()
    if (Number.isNaN(told.atMs)) told.atMs = askedAtMs
    try {
      return await ask()
    } finally {
      this.#feedMs += nowMs() - askedAtMs
    }
  }

  /** Tells the feed if it is time, or at once if the pass `isOver`, and starts from zero. */
  tell(isOver: boolean): void {
    const { nowMs, environment, tell } = this.#options
    const elapsedMs = nowMs() - told.atMs
    if (Number.isNaN(elapsedMs) || (elapsedMs < TELL_MS && !isOver)) return
    tell({
      gpus: countGpus(environment),
      elapsedMs: Math.round(elapsedMs),
      feedMs: Math.round(this.#feedMs),
      transformMs: 0,
      startMs: 0,
      loaderMs: 0,
    })
    told.atMs += elapsedMs
    this.#feedMs = 0
  }
}

interface ReaderTimeOptions {
  readonly nowMs: () => number
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly tell: (time: Omit<TrainerTime, 'rank'>) => void
}

/** The GPUs that stand still while this process waits: its share of those that the job may use on this node. */
export function countGpus(environment: ReaderTimeOptions['environment']): number {
  const {
    CUDA_VISIBLE_DEVICES: visible,
    SLURM_GPUS_ON_NODE,
    LOCAL_WORLD_SIZE,
    SLURM_NTASKS_PER_NODE,
  } = environment
  const gpus =
    visible === undefined
      ? parseCount(SLURM_GPUS_ON_NODE)
      : visible.split(',').filter((each) => !['', '-1'].includes(each.trim())).length
  const ranks = parseCount(LOCAL_WORLD_SIZE) || parseCount(SLURM_NTASKS_PER_NODE)
  return Math.max(1, Math.floor(gpus / Math.max(1, ranks)))
}

function parseCount(text = ''): number {
  return /^\d+$/.test(text) ? Number(text) : 0
}
