import { MIN_MOVE_BYTES } from '../plan/candidates.js'
import type { MemoryPlan } from '../plan/plan-format.js'
import { estimatePlan, type PlanOutcome, type PlanRequest, planMemory } from '../plan/plan-memory.js'
import type { Simulation } from '../plan/simulate-plan.js'
import { type Block, findBlocks, listCalls } from '../step/find-blocks.js'
import type { MemoryProfile } from '../step/profile.js'
import { sumForwardUs } from '../step/recompute-blocks.js'

/** What to choose for: all that `planMemory` is asked, but for the blocks that run again. */
export type WaysRequest = Omit<PlanRequest, 'recompute' | 'profileHash'> & {
  readonly profileHash?: string | undefined
}

/** Tensors simulated while sets are compared: what bounds the time of a choice, to 2 s for 10,000 tensors. */
const EFFORT = 120_000
/** At least so many sets are compared, however large the model. */
const FEWEST_SETS = 14
/** The best sets by estimate are planned in full; the best plan wins. */
const FINALISTS = 3

/** A set of blocks and how the step does when they run again: undefined where it does not fit. */
interface Candidate {
  readonly chosen: readonly number[]
  readonly stepUs: number
  readonly movedBytes: number
}

/**
 * Searches for the blocks to recompute. Sets are compared by an estimate; few are planned in full. First by how many
 * blocks are recomputed, in three orders, then by changing single blocks, also to those inside or around them.
 */
export class WaysSearch {
  /** Blocks that do not overlap, from which the search begins. */
  readonly blocks: readonly Block[]
  /** Those, and the calls inside and around them. */
  readonly #pool: readonly Block[]
  readonly #profile: MemoryProfile
  readonly #request: WaysRequest
  readonly #forwardUs: readonly number[]
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
    this.#forwardUs = this.#pool.map((block) => sumForwardUs(profile, block))
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

  /** The best plan that the search finds; undefined where no set fits. */
  search(): MemoryPlan | undefined {
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
    const freedPerUs = new Map(
      all.map((at) => [at, this.#sumInsideBytes(at) / Math.max(1e-6, this.#forwardUs[at]!)]),
    )
    const byWorth = all.toSorted((a, b) => freedPerUs.get(b)! - freedPerUs.get(a)! || b - a)
    let middle: number | undefined
    for (const order of [all.toReversed(), byWorth, all]) {
      middle = this.#tryOrder(order, middle)
      if (this.#setsLeft <= FEWEST_SETS / 4) return
    }
  }

  /** The step over the count has one valley: looks at a few counts, then ever closer around the best of them. */
  #tryOrder(order: readonly number[], near: number | undefined): number {
    let middle = near ?? 0
    let bestUs = Number.POSITIVE_INFINITY
    const lookAt = (count: number) => {
      if (count < 0 || count > order.length) return
      const stepUs = this.#try(order.slice(0, count))?.stepUs ?? Number.POSITIVE_INFINITY
      if (stepUs < bestUs) {
        bestUs = stepUs
        middle = count
      }
    }
    let stride = near === undefined ? Math.max(1, Math.ceil(order.length / 4)) : 2
    if (near === undefined) for (let at = 0; at < 5; at++) lookAt(Math.min(at * stride, order.length))
    else lookAt(near)
    while (stride > 1) {
      stride = Math.ceil(stride / 2)
      const from = middle
      for (const count of [from - stride, from + stride]) lookAt(count)
    }
    return middle
  }

  /** Adds, takes away or swaps blocks as long as the step gets shorter. */
  #improve(): void {
    for (let before: Candidate | undefined; before !== this.#best && this.#setsLeft > 0; ) {
      before = this.#best
      for (const at of this.#pool.keys()) this.#change(undefined, at)
      for (const out of this.#best?.chosen ?? [])
        for (const add of this.#pool.keys()) if (!this.#best?.chosen.includes(add)) this.#change(out, add)
    }
  }

  /** The best set without `out`, and with `turned` where it is without that, or without it. */
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
    const leastUs = this.#baseUs + chosen.reduce((sum, at) => sum + this.#forwardUs[at]!, 0)
    if (this.#best && leastUs > this.#best.stepUs) return undefined // recomputing alone takes longer
    this.#setsLeft--
    const found = estimatePlan(this.#profile, this.#ask(chosen))
    const candidate = found && describe(chosen, found)
    this.#known.set(key, candidate)
    if (candidate && (!this.#best || isBetter(candidate, this.#best))) this.#best = candidate
    return candidate
  }

  #planFinalists(): MemoryPlan | undefined {
    const ranked = [...this.#known.values()]
      .filter((one) => one !== undefined)
      .sort((a, b) => a.stepUs - b.stepUs || a.movedBytes - b.movedBytes || a.chosen.length - b.chosen.length)
    const most = this.#profile.tensors.length > EFFORT / FEWEST_SETS ? 1 : FINALISTS
    const plans = ranked.slice(0, most).flatMap(({ chosen }) => {
      const outcome = this.plan(chosen)
      const fits = outcome.kind === 'planned' && outcome.plan.predicted.peakBytes <= this.#request.budgetBytes
      return fits ? [outcome.plan] : []
    })
    return plans.toSorted((a, b) => a.predicted.stepMs - b.predicted.stepMs)[0]
  }

  #hasInside(at: number): boolean {
    const own = this.#pool[at]!
    return this.#pool.some((one) => one !== own && overlap(one, own) && one.layers.length < own.layers.length)
  }

  #sumInsideBytes(at: number): number {
    const layers = new Set(this.#pool[at]!.layers)
    return this.#profile.tensors.reduce(
      (sum, { kind, producer, bytes }) =>
        sum + (kind === 'feature' && layers.has(producer.layer) ? bytes : 0),
      0,
    )
  }
}

function overlap(one: Block, other: Block): boolean {
  return one.layers[0]! <= other.layers.at(-1)! && other.layers[0]! <= one.layers.at(-1)!
}

function describe(chosen: readonly number[], { stepUs, movedBytes }: Simulation): Candidate {
  return { chosen, stepUs, movedBytes }
}

function isBetter(one: Candidate, other: Candidate): boolean {
  return one.stepUs < other.stepUs || (one.stepUs === other.stepUs && one.movedBytes < other.movedBytes)
}
