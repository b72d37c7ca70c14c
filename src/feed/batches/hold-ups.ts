import { nameHoldUp } from '../../model/fed-time.js'
import type { StepBlocks } from '../../model/step-blocks.js'
import { sumSteps } from './sum-steps.js'
import type { TrainerTime } from './trainer-time.js'

/** Maximum number of steps of a rank that are kept until other ranks have told theirs. */
const MAX_STEPS = 100_000

/** The steps and waits of a rank. */
interface ToldRank {
  gpus: number
  /** Number of the first step in the lists. */
  first: number
  tookUs: number[]
  waitedUs: number[]
  /** Cause → how long it waited for that since its steps were last taken, in ms. */
  readonly waits: Map<string, number>
  hasTold: boolean
}

/** GPU-milliseconds that ranks waited for another one. */
interface HoldUp {
  /** See `FedTime.waits`. */
  readonly culprit: string
  readonly gpuMs: number
}

/**
 * Computes how long the ranks of a feed waited for each other. Ranks that exchange gradients go at the pace of the
 * slowest: while one waits for its batch, the others wait inside the exchange. So a rank was held up for as long as the
 * rest of its step exceeded the shortest rest of any rank, but for no longer than the lead it had since it got its batch.
 * Ranks that train apart keep their lead, which is subtracted: they hold nobody up.
 */
export class HoldUps {
  readonly #ranks = new Map<number, ToldRank>()

  /** Adds a report of a rank, and how long it waited for what, in ms. */
  add({ rank, gpus, steps }: TrainerTime, waits: Iterable<readonly [culprit: string, ms: number]>): void {
    if (!steps) return
    const told = this.#of(rank)
    // Another loader, or a trainer that was started again, counts from its own first step.
    if (steps.first !== told.first + told.tookUs.length)
      Object.assign(told, { first: steps.first, tookUs: [], waitedUs: [] })
    for (const us of steps.tookUs) told.tookUs.push(us)
    for (const us of steps.waitedUs) told.waitedUs.push(us)
    forgetSteps(told, told.first + told.tookUs.length - MAX_STEPS)
    for (const [culprit, ms] of waits)
      if (ms > 0) told.waits.set(culprit, ms + (told.waits.get(culprit) ?? 0))
    told.gpus = gpus
    told.hasTold = true
  }

  /**
   * Returns the hold-ups of the steps that all ranks have reported since the last call; where ranks of the job, `world` in
   * all, have other feeds, also the steps in blocks.
   */
  take(world: number): { readonly holdUps: readonly HoldUp[]; readonly steps: StepBlocks | undefined } {
    for (const [rank, { hasTold }] of this.#ranks) if (!hasTold) this.#ranks.delete(rank) // it has left
    const ranks = [...this.#ranks]
    for (const [, told] of ranks) told.hasTold = false
    const from = Math.max(...ranks.map(([, { first }]) => first))
    const to = Math.min(...ranks.map(([, { first, tookUs }]) => first + tookUs.length))
    const holdUps = ranks.length > 1 && to > from ? findHoldUps(ranks, from, to) : []
    const steps =
      ranks.length > 0 && ranks.length < world && to > from ? sumSteps(ranks, from, to) : undefined
    for (const [, told] of ranks) {
      forgetSteps(told, to)
      told.waits.clear()
    }
    return { holdUps, steps }
  }

  #of(rank: number): ToldRank {
    const told = this.#ranks.get(rank) ?? {
      ...{ gpus: 1, first: 0, tookUs: [], waitedUs: [] },
      ...{ waits: new Map<string, number>(), hasTold: true },
    }
    this.#ranks.set(rank, told)
    return told
  }
}

function forgetSteps(told: ToldRank, before: number): void {
  const count = Math.min(told.tookUs.length, before - told.first)
  if (count <= 0) return
  told.tookUs.splice(0, count)
  told.waitedUs.splice(0, count)
  told.first += count
}

/** Of one rank, in microseconds. */
interface Held {
  /** Its lead over the last rank to get a batch, less the time for which it was held up since. */
  earlyUs: number
  heldUs: number
  tookUs: number
  /** By the place of the rank that had its batch last. */
  readonly behind: number[]
}

function findHoldUps(ranks: readonly [number, ToldRank][], from: number, to: number): readonly HoldUp[] {
  const all = ranks.map((): Held => ({ earlyUs: 0, heldUs: 0, tookUs: 0, behind: ranks.map(() => 0) }))
  for (let step = from; step < to; step += 1) {
    const waited = ranks.map(([, { first, waitedUs }]) => waitedUs[step - first]!)
    const took = ranks.map(([, { first, tookUs }]) => tookUs[step - first]!)
    const rest = took.map((us, at) => us - waited[at]!)
    const shortest = Math.min(...rest)
    const longestWait = Math.max(...waited)
    const last = waited.indexOf(longestWait)
    for (const [at, held] of all.entries()) {
      const early = longestWait - waited[at]!
      held.behind[last]! += early
      held.earlyUs += early
      const us = Math.min(held.earlyUs, Math.max(0, rest[at]! - shortest))
      held.earlyUs -= us
      held.heldUs += us
      held.tookUs += took[at]!
    }
  }
  return all.flatMap((held, at) =>
    attribute(ranks, held, { at, longestUs: Math.max(...all.map(({ tookUs }) => tookUs)) }),
  )
}

/** Divides the time that a rank was held up among the ranks that were behind it, and the causes of their waits. */
function attribute(
  ranks: readonly [number, ToldRank][],
  { heldUs, tookUs, behind }: Held,
  { at, longestUs }: { readonly at: number; readonly longestUs: number },
): readonly HoldUp[] {
  const behindUs = behind.reduce((sum, us) => sum + us, 0)
  const ms = Math.min(heldUs, behindUs - (longestUs - tookUs)) / 1000
  if (ms <= 0) return []
  return behind.flatMap((us, other) => {
    const [rank, { waits }] = ranks[other]!
    const waitedMs = [...waits.values()].reduce((sum, each) => sum + each, 0)
    return Array.from(waits, ([culprit, each]) => ({
      culprit: nameHoldUp(culprit, rank),
      gpuMs: (ranks[at]![1].gpus * ms * us * each) / (behindUs * waitedMs),
    }))
  })
}
