import { type Checkpoint, writeCheckpoint } from './checkpoint.js'
import { decidePush, mayBegin, type PushDecision, type PushKey } from './plan/decide-push.js'
import { reduceGradients, type SgdOptions, stepSgd } from './plan/momentum-sgd.js'
import {
  findNonFinite,
  isSameLayout,
  layOutParameters,
  type ParameterLayout,
  type ParameterSlot,
} from './plan/parameter-layout.js'
import type { LostPolicy, UpdateMode } from './plan/update-mode.js'

/** What is fixed before step 1. */
export interface CentralOptions {
  readonly mode: UpdateMode
  readonly workers: number
  readonly sgd: SgdOptions
  /** Whether gradients of a step are averaged over ranks (else summed). */
  readonly isMean: boolean
  readonly lost: LostPolicy
  /** How long a sync step waits for its last rank, in milliseconds. */
  readonly lostAfterMs: number
  /** Where checkpoints go; undefined: none are written. */
  readonly checkpointFolder?: string | undefined
  /** A checkpoint every so many versions. */
  readonly checkpointEvery: number
}

/** Outcome of a push; a refused one changed nothing. */
export type PushOutcome =
  | { readonly kind: 'applied' | 'waiting' | 'duplicate'; readonly version: number }
  | Extract<PushDecision, { kind: 'refuse' }>
  | {
      readonly kind: 'refuse'
      readonly reason: 'nan' | 'size' | 'lost' | 'aborted'
      readonly message: string
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
  #collected = new Map<number, { gradient: Float32Array; step: number }>()
  #barrier: NodeJS.Timeout | undefined
  #waiters = new Set<() => void>()
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
    await this.save()
    this.#wake()
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
    const culprit = findNonFinite(this.layout, gradient)
    if (culprit) {
      const message = `rank ${key.rank}, step ${key.step}: the gradient of ${culprit.name} is not finite`
      return { kind: 'refuse', reason: 'nan', message }
    }
    if (decision.kind === 'collect') return this.#collect(key, gradient)
    this.#apply(this.options.isMean ? scale(gradient, 1 / this.options.workers) : gradient)
    this.lastSteps[key.rank] = key.step
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
        (isOutdated ||
          (this.version >= version &&
            mayBegin({ mode: this.options.mode, lastSteps: this.lastSteps }, step))))
    while (!isReady() && !signal.aborted) {
      await new Promise<void>((settle) => {
        const wake = () => {
          this.#waiters.delete(wake)
          signal.removeEventListener('abort', wake)
          settle()
        }
        this.#waiters.add(wake)
        signal.addEventListener('abort', wake, { once: true })
      })
    }
  }

  /** Ranks that the present sync step still waits for. */
  missingRanks(): number[] {
    return this.lastSteps.map((_, rank) => rank).filter((rank) => !this.#collected.has(rank))
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
    this.#wake()
    await this.#saving
  }

  async #collect(key: PushKey, gradient: Float32Array): Promise<PushOutcome> {
    this.#collected.set(key.rank, { gradient, step: key.step })
    if (this.#collected.size === this.options.workers) await this.#finishStep()
    else this.#barrier ??= setTimeout(() => void this.#giveUpWaiting(), this.options.lostAfterMs)
    return { kind: this.#collected.size === 0 ? 'applied' : 'waiting', version: this.version }
  }

  async #finishStep(): Promise<void> {
    clearTimeout(this.#barrier)
    this.#barrier = undefined
    const ranks = [...this.#collected.keys()].sort((a, b) => a - b)
    const gradients = ranks.map((rank) => this.#collected.get(rank)!.gradient)
    for (const rank of ranks) this.lastSteps[rank] = this.#collected.get(rank)!.step
    this.#collected.clear()
    this.#apply(reduceGradients(gradients, this.options.isMean))
    await this.#settle()
  }

  async #giveUpWaiting(): Promise<void> {
    this.#barrier = undefined
    const { lost, lostAfterMs } = this.options
    if (lost.kind === 'quorum' && this.#collected.size >= lost.quorum) return this.#finishStep()
    const missing = this.missingRanks().join(', ')
    this.abortReason = `step ${this.version}: no gradient from rank ${missing} within ${lostAfterMs} ms`
    this.#wake()
  }

  #apply(gradient: Float32Array): void {
    const { slots } = this.layout!
    stepSgd(this.parameters, this.velocity, gradient, this.options.sgd)
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
    this.#wake()
  }

  #wake(): void {
    for (const wake of [...this.#waiters]) wake()
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
