import type { CentralOptions, PushOutcome } from './central-options.js'
import { type Checkpoint, writeCheckpoint } from './checkpoint.js'
import { decidePush, findHolding, mayBegin, type PushKey } from './plan/decide-push.js'
import { reduceGradients, stepSgd } from './plan/momentum-sgd.js'
import {
  findNonFinite,
  isSameLayout,
  layOutParameters,
  type ParameterLayout,
  type ParameterSlot,
} from './plan/parameter-layout.js'
import {
  advanceRange,
  findLargest,
  findOverflow,
  isSafe,
  measureRange,
  type UpdateRange,
} from './plan/update-range.js'
import { Waiters } from './waiters.js'

/** A gradient that waits for those of the other ranks, and its largest magnitude. */
interface CollectedGradient {
  readonly gradient: Float32Array
  readonly largest: number
}

/** The one place where parameters are updated. Owns parameters, velocity, the barrier of a sync step, checkpoints. */
export class CentralNode {
  readonly options: CentralOptions
  layout: ParameterLayout | undefined
  epoch = 0
  version = 0
  parameters: Float32Array = new Float32Array()
  velocity: Float32Array = new Float32Array()
  lastSteps: number[]
  /** Why the job cannot go on; undefined while it can. */
  abortReason: string | undefined
  /** Version at which each parameter last changed: what a delta pull needs. */
  changedAt: number[] = []
  #collected = new Map<number, CollectedGradient & { readonly step: number }>()
  #barrier: NodeJS.Timeout | undefined
  readonly #waiters = new Waiters()
  /** Ranks that ssp mode has given up until they push again. */
  #lost = new Set<number>()
  #range: UpdateRange = { parameter: 0, velocity: 0 }
  #saving: Promise<void> = Promise.resolve()
  #savedVersion = -1
  /** Updates whose due checkpoints are not on disk yet: until there are none, nobody may see the version. */
  #settling = 0

  constructor(options: CentralOptions, checkpoint?: Checkpoint) {
    this.options = options
    this.lastSteps = new Array<number>(options.workers).fill(-1)
    if (!checkpoint) return
    this.layout = layOutParameters(checkpoint.slots)
    this.epoch = checkpoint.epoch + 1
    this.version = checkpoint.version
    this.parameters = checkpoint.parameters
    this.velocity = checkpoint.velocity
    this.lastSteps = this.lastSteps.map((_, rank) => checkpoint.lastSteps[rank] ?? -1)
    this.changedAt = this.layout.slots.map(() => this.version)
    this.#range = measureRange(this.parameters, this.velocity)
  }

  /**
   * Takes the first worker's parameters; later workers only compare. False when they mean another model. Resolves
   * when they are on disk: a server killed after that still knows them.
   */
  async begin(slots: readonly ParameterSlot[], values: Float32Array): Promise<boolean> {
    if (this.layout) {
      await this.#saving
      return isSameLayout(this.layout.slots, slots)
    }
    const layout = layOutParameters(slots)
    if (values.length !== layout.length) return false
    this.layout = layout
    this.parameters = values.slice()
    this.velocity = new Float32Array(values.length)
    this.changedAt = layout.slots.map(() => 0)
    this.#range = measureRange(this.parameters, this.velocity)
    await this.save()
    this.#waiters.wakeAll()
    return true
  }

  /** Decides on a gradient and applies it, or keeps it until its step is whole. */
  async push(key: PushKey, gradient: Float32Array): Promise<PushOutcome> {
    if (this.abortReason !== undefined)
      return { kind: 'refuse', reason: 'aborted', message: this.abortReason }
    const decision = decidePush(
      {
        mode: this.options.mode,
        workers: this.options.workers,
        epoch: this.epoch,
        version: this.version,
        lastSteps: this.lastSteps,
        arrived: new Set(this.#collected.keys()),
        lost: this.#lost,
      },
      key,
    )
    if (decision.kind === 'refuse') return decision
    if (decision.kind === 'duplicate') {
      await this.#saving // what is called known must survive this server
      return { kind: 'duplicate', version: this.version }
    }
    if (!this.layout) {
      const message = 'the server has no parameters: it was restarted without --checkpoint'
      return { kind: 'refuse', reason: 'lost', message }
    }
    if (gradient.length !== this.layout.length) {
      const message = `${gradient.length} values, expected ${this.layout.length}`
      return { kind: 'refuse', reason: 'size', message }
    }
    const largest = findLargest(gradient)
    if (Number.isNaN(largest)) {
      const name = findNonFinite(this.layout, gradient)?.name
      const message = `rank ${key.rank}, step ${key.step}: the gradient of ${name} is not finite`
      return { kind: 'refuse', reason: 'nan', message }
    }
    const share = this.options.isMean ? 1 / this.options.workers : 1
    const overflow = this.#explainOverflow(largest * share, () => gradient.map((value) => value * share))
    if (overflow !== undefined) {
      const message = `rank ${key.rank}, step ${key.step}: its gradient ${overflow}`
      return { kind: 'refuse', reason: 'overflow', message }
    }
    if (decision.kind === 'collect') return this.#collect(key, { gradient, largest })
    this.#apply(scale(gradient, share), largest * share)
    this.#advance(key)
    await this.#settle()
    return { kind: 'applied', version: this.version }
  }

  /**
   * Resolves when there is a version of at least `version` and `step` may begin, or the job was aborted. Who still
   * believes in another epoch is not kept waiting: what it pushed then is gone, and it must push again.
   */
  async waitFor(
    { version, step, epoch }: { version: number; step: number; epoch: number },
    signal: AbortSignal,
  ): Promise<void> {
    const isOutdated = epoch >= 0 && epoch !== this.epoch
    const isReady = () =>
      this.abortReason !== undefined ||
      (this.layout !== undefined &&
        this.#settling === 0 &&
        (isOutdated || (this.version >= version && mayBegin(this.#progress, step))))
    while (!isReady() && !signal.aborted) {
      if (this.layout && findHolding(this.#progress, step).length > 0)
        this.#barrier ??= setTimeout(() => this.#giveUpHolding(step), this.options.lostAfterMs)
      await this.#waiters.wait(signal)
    }
  }

  /** Ranks that others wait for: whose gradient of the present sync step is missing, or who are slowest in ssp mode. */
  missingRanks(): number[] {
    const { mode } = this.options
    if (mode.kind === 'ssp') return findHolding(this.#progress, 2 + Math.max(...this.lastSteps))
    const ranks = this.lastSteps.map((_, rank) => rank)
    return mode.kind === 'sync' ? ranks.filter((rank) => !this.#collected.has(rank)) : []
  }

  /** Writes a checkpoint of the present version, after those under way. */
  save(): Promise<void> {
    const { checkpointFolder } = this.options
    if (checkpointFolder === undefined || !this.layout) return Promise.resolve()
    this.#saving = this.#saving.then(async () => {
      this.#savedVersion = this.version
      await writeCheckpoint(checkpointFolder, {
        slots: this.layout!.slots,
        epoch: this.epoch,
        version: this.version,
        lastSteps: this.lastSteps.slice(),
        parameters: this.parameters.slice(),
        velocity: this.velocity.slice(),
      })
    })
    return this.#saving
  }

  /** Stops timers and waits for the checkpoint under way. */
  async close(): Promise<void> {
    clearTimeout(this.#barrier)
    this.abortReason ??= 'the server is stopping'
    this.#waiters.wakeAll()
    await this.#saving
  }

  async #collect(key: PushKey, collected: CollectedGradient): Promise<PushOutcome> {
    this.#collected.set(key.rank, { ...collected, step: key.step })
    if (this.#collected.size === this.options.workers) await this.#finishStep()
    else this.#barrier ??= setTimeout(() => void this.#giveUpWaiting(), this.options.lostAfterMs)
    return { kind: this.#collected.size === 0 ? 'applied' : 'waiting', version: this.version }
  }

  async #finishStep(): Promise<void> {
    clearTimeout(this.#barrier)
    this.#barrier = undefined
    const ranks = [...this.#collected.keys()].sort((a, b) => a - b)
    const gradients = ranks.map((rank) => this.#collected.get(rank)!.gradient)
    const largest = ranks.reduce((sum, rank) => sum + this.#collected.get(rank)!.largest, 0)
    for (const rank of ranks) this.lastSteps[rank] = this.#collected.get(rank)!.step
    this.#collected.clear()
    const update = reduceGradients(gradients, this.options.isMean ? 'mean' : 'sum')
    const overflow = this.#explainOverflow(largest, () => update)
    if (overflow === undefined) this.#apply(update, largest)
    else this.abortReason = `step ${this.version}: the gradients of all ranks together ${overflow}`
    await this.#settle()
  }

  get #progress() {
    return { mode: this.options.mode, lastSteps: this.lastSteps, lost: this.#lost }
  }

  /** Notes that a push of ssp or async mode was applied: who waits for its rank waits anew. */
  #advance({ rank, step }: PushKey): void {
    this.lastSteps[rank] = step
    clearTimeout(this.#barrier)
    this.#barrier = undefined
    const { mode } = this.options
    const next = 1 + Math.max(...this.lastSteps)
    if (mode.kind === 'ssp' && next - step - 1 <= mode.bound) this.#lost.delete(rank)
  }

  /** No rank has moved for so long, and some keep others from `step`: names them, or goes on without. */
  #giveUpHolding(step: number): void {
    this.#barrier = undefined
    const holding = findHolding(this.#progress, step)
    const { lost, lostAfterMs, workers } = this.options
    if (holding.length === 0) return
    if (lost.kind === 'quorum' && workers - this.#lost.size - holding.length >= lost.quorum)
      for (const rank of holding) this.#lost.add(rank)
    else
      this.abortReason = `step ${step} waits for rank ${holding.join(', ')}, and no rank has pushed for ${lostAfterMs} ms`
    this.#waiters.wakeAll()
  }

  /** Says which parameter an update of magnitudes up to `largest` would make infinite; undefined: none. */
  #explainOverflow(largest: number, getUpdate: () => Float32Array): string | undefined {
    const { sgd } = this.options
    if (isSafe(advanceRange(this.#range, largest, sgd))) return undefined
    const update = getUpdate()
    const at = findOverflow(this, update, sgd)
    if (at === undefined) return undefined
    const slot = this.layout!.slots.findLast(({ offset }) => offset <= at)
    const [added, present] = [update[at]!, this.parameters[at]!].map((value) => value.toExponential(1))
    return `would make ${slot?.name} infinite: ${added} on top of ${present}`
  }

  async #giveUpWaiting(): Promise<void> {
    this.#barrier = undefined
    const { lost, lostAfterMs } = this.options
    if (lost.kind === 'quorum' && this.#collected.size >= lost.quorum) return this.#finishStep()
    const missing = this.missingRanks().join(', ')
    this.abortReason = `step ${this.version}: no gradient from rank ${missing} within ${lostAfterMs} ms`
    this.#waiters.wakeAll()
  }

  #apply(gradient: Float32Array, largest: number): void {
    const { slots } = this.layout!
    const { sgd } = this.options
    const range = advanceRange(this.#range, largest, sgd)
    stepSgd(this, gradient, sgd)
    // Bounds only grow. Where they are no longer of use, the values themselves count again.
    this.#range = isSafe(range) ? range : measureRange(this.parameters, this.velocity)
    this.version++
    for (const [at, { offset, length }] of slots.entries()) {
      if (hasMotion(this.velocity, offset, length)) this.changedAt[at] = this.version
    }
  }

  /** Ends an update: writes the checkpoint if one is due, then lets the waiting pulls go. */
  async #settle(): Promise<void> {
    if (this.version - this.#savedVersion >= this.options.checkpointEvery) {
      this.#settling++
      await this.save().finally(() => {
        this.#settling--
      })
    }
    this.#waiters.wakeAll()
  }
}

/** Scales in place: the gradient is this node's own. */
function scale(values: Float32Array, factor: number): Float32Array {
  if (factor !== 1) for (let at = 0; at < values.length; at++) values[at]! *= factor
  return values
}

function hasMotion(values: Float32Array, offset: number, length: number): boolean {
  for (let at = offset; at < offset + length; at++) if (values[at] !== 0) return true
  return false
}
