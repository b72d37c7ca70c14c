import { MIN_MOVE_BYTES } from '../plan/candidates.js'
import type { MemoryPlan } from '../plan/plan-format.js'
import { estimatePlan, type PlanOutcome, type PlanRequest, planMemory } from '../plan/plan-memory.js'
import type { Simulation } from '../plan/simulate-plan.js'
import { type Block, findBlocks, listCalls } from '../step/find-blocks.js'
import type { MemoryProfile } from '../step/profile.js'
import { findValley } from './find-valley.js'
import { type BlockWeight, guessCount, type Surplus, weighBlocks } from './weigh-blocks.js'

/** The request for a choice: that of `planMemory`, except for the blocks that run again. */
export type WaysRequest = Omit<PlanRequest, 'recompute' | 'profileHash'> & {
  readonly profileHash?: string | undefined
}

/** Tensors simulated while sets are compared: bounds the time of a choice, to 2 s for 10,000 tensors. */
const EFFORT = 120_000
/** At least this many sets are compared, however large the model. */
const FEWEST_SETS = 8
/** If fewer sets can be compared, the search starts from its guess alone. */
const MANY_SETS = 40
/** The best sets by estimate are planned in full; the best plan wins. */
const FINALISTS = 3

/** A set of blocks and the step's result when they run again: undefined if it does not fit. */
interface Candidate {
  readonly chosen: readonly number[]
  readonly stepUs: number
  readonly stallUs: number
  readonly movedBytes: number
}

/**
 * Searches for the blocks to recompute. Compares sets by an estimate and plans few in full. First varies the number of
 * recomputed blocks, in three orders and from a guess, then changes single blocks, also to those inside or around them.
 */
export class WaysSearch {
  /** Blocks that do not overlap, from which the search starts. */
  readonly blocks: readonly Block[]
  /** These blocks, and the calls inside and around them. */
  readonly #pool: readonly Block[]
  readonly #profile: MemoryProfile
  readonly #request: WaysRequest
  readonly #weights: readonly BlockWeight[]
  readonly #surplus: Surplus
  readonly #baseUs: number
  readonly #known = new Map<string, Candidate | undefined>()
  #best: Candidate | undefined
  #setsLeft: number

  constructor(profile: MemoryProfile, request: WaysRequest) {
    this.#profile = profile
    this.#request = request
    this.blocks = findBlocks(profile)
    const names = new Set(this.blocks)
    const isKnown = ({ name, recorded }: Block) =>
      [...names].some((one) => one.name === name && one.recorded?.call === recorded?.call)
    this.#pool = [...this.blocks, ...listCalls(profile).filter((call) => !isKnown(call))]
    const { weights, surplus } = weighBlocks(profile, this.#pool, request.budgetBytes)
    this.#weights = weights
    this.#surplus = surplus
    this.#baseUs = profile.layers.reduce(
      (sum, layer) => sum + layer.fwdUs + layer.bwdParamUs + layer.bwdFeatUs,
      0,
    )
    this.#setsLeft = Math.max(FEWEST_SETS, Math.floor(EFFORT / Math.max(1, profile.tensors.length)))
  }

  /** The plan in which the blocks `chosen` of `blocks` run again. */
  plan(chosen: readonly number[]): PlanOutcome {
    return planMemory(this.#profile, this.#ask(chosen))
  }

  /** The best plan found; undefined if no set fits. Stops early without stalls: the step cannot get shorter then. */
  search(): MemoryPlan | undefined {
    if (this.#try([])?.stallUs === 0) return this.#planFinalists()
    const base = this.blocks.map((_, at) => at)
    this.#tryCounts(base)
    if (!this.#best) this.#tryCounts([...this.#pool.keys()].filter((at) => !this.#hasInside(at)))
    this.#improve()
    return this.#planFinalists()
  }

  #ask(chosen: readonly number[]): PlanRequest {
    const { smallestBytes = MIN_MOVE_BYTES, profileHash = '' } = this.#request
    return { ...this.#request, smallestBytes, profileHash, recompute: chosen.map((at) => this.#pool[at]!) }
  }

  /** Recomputes more and more blocks, in three orders. */
  #tryCounts(all: readonly number[]): void {
    const worth = this.#weights.map(({ madeBytes, forwardUs }) => madeBytes / Math.max(1e-6, forwardUs))
    const byWorth = all.toSorted((a, b) => worth[b]! - worth[a]! || b - a)
    let middle: number | undefined
    for (const order of [all.toReversed(), byWorth, all]) {
      middle = this.#tryOrder(order, middle)
      if (this.#setsLeft <= FEWEST_SETS / 4) return
    }
  }

  /**
   * The step time over the count mostly has one valley: starts at a guess, and at other counts, too, if effort is left.
   */
  #tryOrder(order: readonly number[], near: number | undefined): number {
    const stepUsAt = (count: number) => this.#try(order.slice(0, count))?.stepUs ?? Number.POSITIVE_INFINITY
    const weights = order.map((at) => this.#weights[at]!)
    const guess = near ?? guessCount(weights, this.#surplus)
    const isWide = near === undefined && (this.#setsLeft > MANY_SETS || !Number.isFinite(stepUsAt(guess)))
    const most = order.length
    const quarter = Math.max(1, Math.ceil(most / 4))
    const nearest = Math.max(1, Math.floor(most / 128)) // with many blocks, one more or less hardly matters
    const starts = isWide ? [guess, 0, quarter, 2 * quarter, 3 * quarter, most] : [guess]
    const stride = isWide ? Math.ceil(quarter / 2) : near === undefined ? 4 * nearest : nearest
    return findValley(stepUsAt, { starts, most, stride, nearest })
  }

  /** Adds, removes or swaps blocks as long as the step gets shorter. */
  #improve(): void {
    for (let before: Candidate | undefined; before !== this.#best && this.#setsLeft > 0; ) {
      before = this.#best
      for (const at of this.#pool.keys()) this.#change(undefined, at)
      if (this.#setsLeft <= 0) return
      for (const out of this.#best?.chosen ?? [])
        for (const add of this.#pool.keys()) if (!this.#best?.chosen.includes(add)) this.#change(out, add)
    }
  }

  /** The best set without `out`, and with `turned` toggled: added if absent, else removed. */
  #change(out: number | undefined, turned: number): void {
    if (!this.#best) return
    const rest = this.#best.chosen.filter((at) => at !== out)
    const isIn = rest.includes(turned)
    this.#try(
      isIn
        ? rest.filter((at) => at !== turned)
        : [...rest.filter((at) => !overlap(this.#pool[at]!, this.#pool[turned]!)), turned],
    )
  }

  #try(set: readonly number[]): Candidate | undefined {
    const chosen = set.toSorted((a, b) => this.#pool[a]!.layers[0]! - this.#pool[b]!.layers[0]!)
    const key = chosen.join()
    if (this.#known.has(key) || this.#setsLeft <= 0) return this.#known.get(key)
    const leastUs = this.#baseUs + chosen.reduce((sum, at) => sum + this.#weights[at]!.forwardUs, 0)
    if (this.#best && leastUs > this.#best.stepUs) return undefined // recomputing alone takes longer
    this.#setsLeft--
    const found = estimatePlan(this.#profile, this.#ask(chosen))
    const candidate = found && describe(chosen, found)
    this.#known.set(key, candidate)
    if (candidate && (!this.#best || isBetter(candidate, this.#best))) this.#best = candidate
    return candidate
  }

  /** Plans the best sets in full and, if that is quick, the one without recomputation. */
  #planFinalists(): MemoryPlan | undefined {
    const ranked = [...this.#known.values()]
      .filter((one) => one !== undefined)
      .sort((a, b) => a.stepUs - b.stepUs || a.movedBytes - b.movedBytes || a.chosen.length - b.chosen.length)
    const isLarge = this.#profile.tensors.length > EFFORT / MANY_SETS
    const most = isLarge ? 1 : FINALISTS
    const plans: MemoryPlan[] = []
    for (const [place, { chosen }] of ranked.entries()) {
      if (plans.length >= most && (isLarge || chosen.length > 0)) continue
      const outcome = this.plan(chosen)
      const fits = outcome.kind === 'planned' && outcome.plan.predicted.peakBytes <= this.#request.budgetBytes
      if (fits) plans.push(outcome.plan)
      if (place === 0 && plans[0]?.predicted.stallMs === 0 && chosen.length === 0) break
    }
    return plans.toSorted((a, b) => a.predicted.stepMs - b.predicted.stepMs)[0]
  }

  #hasInside(at: number): boolean {
    const own = this.#pool[at]!
    return this.#pool.some((one) => one !== own && overlap(one, own) && one.layers.length < own.layers.length)
  }
}

function overlap(one: Block, other: Block): boolean {
  return one.layers[0]! <= other.layers.at(-1)! && other.layers[0]! <= one.layers.at(-1)!
}

function describe(chosen: readonly number[], { stepUs, stallUs, movedBytes }: Simulation): Candidate {
  return { chosen, stepUs, stallUs, movedBytes }
}

function isBetter(one: Candidate, other: Candidate): boolean {
  return one.stepUs < other.stepUs || (one.stepUs === other.stepUs && one.movedBytes < other.movedBytes)
}
