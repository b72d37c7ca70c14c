import { MIN_MOVE_BYTES } from './candidates.js'
import { type Block, findBlocks } from './find-blocks.js'
import type { MemoryPlan } from './plan-format.js'
import { type PlanOutcome, type PlanRequest, planMemory } from './plan-memory.js'
import type { MemoryProfile } from './profile.js'
import { sumForwardUs } from './recompute-blocks.js'

/** Which blocks run their forward again, and what the step is predicted to take when the rest moves as planned. */
export interface Way {
  /** Names of the recomputed blocks, in order of execution. */
  readonly recomputed: readonly string[]
  /** Milliseconds of the step: computing, recomputing and stalls. */
  readonly stepMs: number
  readonly recomputeMs: number
  readonly stallMs: number
  readonly peakBytes: number
  /** Storages that leave the device and come back. */
  readonly moves: number
  readonly movedBytes: number
}

/** The three ways to keep a tensor, compared under one budget. A way that does not fit is undefined. */
export interface Ways {
  readonly blocks: readonly Block[]
  readonly budgetBytes: number
  /** Everything stays: the step as it was profiled. */
  readonly keepAll: Way
  /** Every block runs again and nothing moves, whatever the budget: `checkpoint()` around each block. */
  readonly recomputeAll: Way
  /** Only moves: what `dsc memory plan` does. */
  readonly moveOnly: Way | undefined
  /** The mixture with the least predicted step. */
  readonly best: Way | undefined
}

/** What to choose for: all that `planMemory` is asked, but for the blocks that run again. */
export type WaysRequest = Omit<PlanRequest, 'recompute' | 'profileHash'> & {
  readonly profileHash?: string | undefined
}

/**
 * Chooses for every block whether it is recomputed, and plans what of the rest moves, so that the predicted step is
 * least under a budget. Pure. Tries how many blocks are recomputed, from the end, from the start and by bytes per time;
 * then changes single blocks and swaps two as long as that helps. Sets that recompute longer than the best step so far
 * are not looked at.
 */
export function chooseWays(profile: MemoryProfile, request: WaysRequest): Ways {
  const search = new Search(profile, request)
  const roomy = new Search(profile, { ...request, budgetBytes: Number.MAX_SAFE_INTEGER })
  search.tryCounts()
  search.improve()
  return {
    blocks: search.blocks,
    budgetBytes: request.budgetBytes,
    keepAll: roomy.evaluate([])!,
    recomputeAll: roomy.evaluate(search.blocks.map((_, at) => at))!,
    moveOnly: search.evaluate([]),
    best: search.best,
  }
}

/**
 * Plans one step under a byte budget, keeping, recomputing and moving: the mixture that `chooseWays` would choose. Where
 * none fits, the least budget is that of all blocks recomputed, or of none, whichever is smaller. Pure.
 */
export function planWays(profile: MemoryProfile, request: WaysRequest): PlanOutcome {
  const search = new Search(profile, request)
  const kept = search.plan([])
  // Nothing is shorter than a step in which nothing runs again and nothing waits.
  if (kept.kind === 'planned' && kept.plan.predicted.stallMs === 0) return kept
  search.tryCounts()
  search.improve()
  if (search.bestPlan) return { kind: 'planned', plan: search.bestPlan }
  const again = search.plan(search.blocks.map((_, at) => at))
  if (kept.kind === 'planned') return kept
  return again.kind === 'planned' || again.leastBytes < kept.leastBytes ? again : kept
}

/** Counts of recomputed blocks that are tried first, per order. */
const FIRST_COUNTS = 4
/** Tensors planned for while single blocks are changed: bounds the time on large models. */
const EFFORT = 60_000

class Search {
  readonly blocks: readonly Block[]
  readonly #profile: MemoryProfile
  readonly #request: WaysRequest
  readonly #forwardMs: readonly number[]
  readonly #baseMs: number
  readonly #known = new Map<string, Way | undefined>()
  #best: { readonly way: Way; readonly chosen: readonly number[]; readonly plan: MemoryPlan } | undefined
  #effort = 0

  constructor(profile: MemoryProfile, request: WaysRequest) {
    this.#profile = profile
    this.#request = request
    this.blocks = findBlocks(profile)
    this.#forwardMs = this.blocks.map((block) => sumForwardUs(profile, block) / 1000)
    this.#baseMs =
      profile.layers.reduce((sum, layer) => sum + layer.fwdUs + layer.bwdParamUs + layer.bwdFeatUs, 0) / 1000
  }

  get best(): Way | undefined {
    return this.#best?.way
  }

  get bestPlan(): MemoryPlan | undefined {
    return this.#best?.plan
  }

  /** The plan in which the blocks `chosen` run again. */
  plan(chosen: readonly number[]): PlanOutcome {
    const { smallestBytes = MIN_MOVE_BYTES, profileHash = '' } = this.#request
    const recompute = chosen.map((at) => this.blocks[at]!)
    return planMemory(this.#profile, { ...this.#request, smallestBytes, profileHash, recompute })
  }

  /** What recomputing the blocks `chosen` comes to; undefined where it does not fit. */
  evaluate(chosen: readonly number[]): Way | undefined {
    const key = chosen.join()
    if (this.#known.has(key)) return this.#known.get(key)
    const outcome = this.plan(chosen)
    this.#effort += this.#profile.tensors.length
    if (outcome.kind === 'infeasible' || outcome.plan.predicted.peakBytes > this.#request.budgetBytes) {
      this.#known.set(key, undefined)
      return undefined
    }
    const { plan } = outcome
    const way = describeWay(plan)
    this.#known.set(key, way)
    if (!this.#best || isBetter(way, this.#best.way)) this.#best = { way, chosen, plan }
    return way
  }

  /** Recomputes more and more blocks, in three orders. */
  tryCounts(): void {
    const all = this.blocks.map((_, at) => at)
    const freedPerMs = all.map((at) => this.#sumInsideBytes(at) / Math.max(1e-9, this.#forwardMs[at]!))
    const orders = [all.toReversed(), all, all.toSorted((a, b) => freedPerMs[b]! - freedPerMs[a]! || b - a)]
    for (const order of orders) this.#tryOrder(order)
  }

  /** Tries a few counts, and then, around the best of them, ever closer ones: the step over the count has one valley. */
  #tryOrder(order: readonly number[]): void {
    let stride = Math.max(1, Math.ceil(order.length / FIRST_COUNTS))
    let middle = 0
    const lookAt = (count: number) => {
      if (count < 0 || count > order.length) return
      const before = this.best
      this.#try(order.slice(0, count))
      if (this.best !== before) middle = count
    }
    for (let count = 0; count < order.length + stride; count += stride) lookAt(Math.min(count, order.length))
    while (stride > 1) {
      stride = Math.ceil(stride / 2)
      for (const count of [middle - stride, middle + stride]) lookAt(count)
    }
  }

  /** Adds, takes away or swaps blocks as long as the step gets shorter. */
  improve(): void {
    const all = this.blocks.map((_, at) => at)
    for (let before: Way | undefined; before !== this.best && this.#effort < EFFORT; ) {
      before = this.best
      for (const at of all) this.#change([at])
      for (const out of this.#best?.chosen ?? []) {
        for (const add of all) if (!this.#best?.chosen.includes(add)) this.#change([out, add])
      }
    }
  }

  /** Turns the choice of `changed` around in the best set. */
  #change(changed: readonly number[]): void {
    if (!this.#best || this.#effort >= EFFORT) return
    const set = new Set(this.#best.chosen)
    for (const at of changed) if (!set.delete(at)) set.add(at)
    this.#try([...set])
  }

  #try(set: readonly number[]): void {
    const chosen = set.toSorted((a, b) => a - b)
    const cannotWin = this.#best && this.#baseMs + this.#sumMs(chosen) > this.#best.way.stepMs
    if (!cannotWin) this.evaluate(chosen)
  }

  #sumMs(chosen: readonly number[]): number {
    return chosen.reduce((sum, at) => sum + this.#forwardMs[at]!, 0)
  }

  #sumInsideBytes(at: number): number {
    const layers = new Set(this.blocks[at]!.layers)
    return this.#profile.tensors.reduce(
      (sum, { kind, producer, bytes }) =>
        sum + (kind === 'feature' && layers.has(producer.layer) ? bytes : 0),
      0,
    )
  }
}

function isBetter(one: Way, other: Way): boolean {
  return one.stepMs < other.stepMs || (one.stepMs === other.stepMs && one.movedBytes < other.movedBytes)
}

function describeWay({ predicted, moves, recompute }: MemoryPlan): Way {
  return {
    recomputed: recompute.map(({ name }) => name),
    stepMs: predicted.stepMs,
    recomputeMs: predicted.recomputeMs,
    stallMs: predicted.stallMs,
    peakBytes: predicted.peakBytes,
    moves: moves.length,
    movedBytes: predicted.movedBytes,
  }
}
