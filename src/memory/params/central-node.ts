import { EventEmitter, once } from 'node:events'
import { DscError } from '../../failure/dsc-error.js'
import { MAX_TIMER_MS } from '../../model/duration.js'
import type { CentralOptions, PushExtras, PushOutcome } from './central-options.js'
import type { Checkpoint } from './checkpoint.js'
import { CheckpointWriter } from './checkpoint-writer.js'
import { measureGradient } from './measure-gradient.js'
import { beginState, ParameterState } from './parameter-state.js'
import { decidePush, findHolding, mayBegin, type PushDecision, type PushKey } from './plan/decide-push.js'
import {
  changeSettings,
  type OptimizerChange,
  type OptimizerSettings,
  resumeSettings,
} from './plan/optimizer-settings.js'
import { isSameLayout, type ParameterLayout, type ParameterSlot } from './plan/parameter-layout.js'
import { averageBuffers, reduceGradients, scaleTrained } from './plan/reduce-gradients.js'

/** A gradient that waits for those of the other ranks, and its largest magnitude. */
interface CollectedGradient extends PushExtras {
  readonly step: number
  readonly gradient: Float32Array
  readonly largest: number
}

/** The only place that updates parameters. Owns their state, the barrier of a sync step, and checkpoints. */
export class CentralNode {
  readonly options: CentralOptions
  epoch = 0
  version = 0
  /** Undefined until the first worker has begun. */
  state: ParameterState | undefined
  lastSteps: number[]
  /** Why the job cannot go on; undefined while it can. */
  abortReason: string | undefined
  #optimizer: OptimizerSettings
  #collected = new Map<number, CollectedGradient>()
  #barrier: NodeJS.Timeout | undefined
  /** Tells calls that wait that something has changed; they check for themselves. */
  readonly #changes = new EventEmitter().setMaxListeners(0)
  /** Ranks that ssp mode has given up on until they push again. */
  #lost = new Set<number>()
  readonly #checkpoints: CheckpointWriter

  constructor(options: CentralOptions, checkpoint?: Checkpoint) {
    this.options = { ...options, lostAfterMs: Math.min(options.lostAfterMs, MAX_TIMER_MS) }
    this.#checkpoints = new CheckpointWriter(options.checkpointFolder)
    this.#optimizer = options.optimizer
    this.lastSteps = new Array<number>(options.workers).fill(-1)
    if (!checkpoint) return
    this.epoch = checkpoint.epoch + 1
    this.version = checkpoint.version
    this.#optimizer = resumeSettings(options.optimizer, checkpoint)
    this.state = new ParameterState(checkpoint, this.version)
    const { lastSteps } = checkpoint // a new rank starts at the slowest's step: others wait for lower ones
    this.lastSteps = this.lastSteps.map((_, rank) => lastSteps[rank] ?? Math.min(...lastSteps))
  }

  /** Undefined until the first worker has begun. */
  get layout(): ParameterLayout | undefined {
    return this.state?.layout
  }

  /** The settings for the next updates. */
  get optimizer(): OptimizerSettings {
    return this.#optimizer
  }

  /** Changes the optimizer's settings from the next update on; resolves when the change is on disk. */
  async change(change: OptimizerChange): Promise<void> {
    const before = this.#optimizer
    this.#optimizer = changeSettings(before, change)
    await this.#saveOr(() => {
      this.#optimizer = before
    })
  }

  /**
   * Takes the first worker's parameters; later workers only compare. Returns false if theirs describe another model.
   * Resolves when they are on disk: a server killed after that still knows them.
   */
  async begin(slots: readonly ParameterSlot[], values: Float32Array): Promise<boolean> {
    if (this.layout) await this.#checkpoints.settle()
    if (this.layout) return isSameLayout(this.layout.slots, slots)
    this.state = beginState(slots, values, this.#optimizer.kind)
    if (!this.state) return false
    await this.#saveOr(() => {
      this.state = undefined
    })
    return true
  }

  /** Decides on a gradient and applies it, or keeps it until its step is complete. */
  async push(key: PushKey, gradient: Float32Array, extras: PushExtras = {}): Promise<PushOutcome> {
    const aborted = this.#findAbort()
    if (aborted) return aborted
    const decision = this.#decide(key)
    if (decision.kind === 'refuse') return decision
    if (decision.kind === 'duplicate') {
      await this.#checkpoints.settle() // a push reported as known must survive this server
      return this.#findAbort() ?? { kind: 'duplicate', version: this.version }
    }
    if (!this.state) {
      const message = 'the server has no parameters: it was restarted without --checkpoint'
      return { kind: 'refuse', reason: 'lost', message }
    }
    const { slots } = this.state.layout
    const largest = measureGradient(this.state.layout, key, gradient)
    if (typeof largest !== 'number') return largest
    const share = this.options.isMean ? 1 / this.options.workers : 1
    const update = { largest, absent: new Set(extras.absent), settings: this.#settingsFor(extras) }
    const getGradient = () => scaleTrained(gradient.slice(), slots, share)
    const overflow = this.state.explainOverflow({ ...update, largest: largest * share }, getGradient)
    if (overflow !== undefined) {
      const message = `rank ${key.rank}, step ${key.step}: its gradient ${overflow}`
      return { kind: 'refuse', reason: 'overflow', message }
    }
    if (decision.kind === 'collect')
      return this.#collect(key, { gradient, largest, step: key.step, ...extras })
    this.version++
    this.state.apply({ ...update, gradient: scaleTrained(gradient, slots, share) }, this.version)
    this.#advance(key)
    return (await this.#settle()) ?? { kind: 'applied', version: this.version }
  }

  /**
   * Resolves when there is a version of at least `version` and `step` may begin, or the job was aborted. A worker that
   * still believes in another epoch does not wait: the gradients it pushed then are gone, and it must push again.
   */
  async waitFor(
    { version, step, epoch }: { version: number; step: number; epoch: number },
    signal: AbortSignal,
  ): Promise<void> {
    const isOutdated = epoch >= 0 && epoch !== this.epoch
    const isReady = () =>
      this.abortReason !== undefined ||
      (this.layout !== undefined &&
        !this.#checkpoints.isWriting &&
        (isOutdated || (this.version >= version && mayBegin(this.#progress, step))))
    while (!isReady() && !signal.aborted) {
      if (this.layout && findHolding(this.#progress, step).length > 0)
        this.#barrier ??= setTimeout(() => this.#giveUpHolding(step), this.options.lostAfterMs)
      await once(this.#changes, 'change', { signal }).catch(() => {})
    }
  }

  /** Ranks that hold up others: their gradient of the current sync step is missing, or they are slowest in ssp mode. */
  missingRanks(): number[] {
    const { mode } = this.options
    if (mode.kind === 'ssp') return findHolding(this.#progress, 2 + Math.max(...this.lastSteps))
    const ranks = this.lastSteps.map((_, rank) => rank)
    return mode.kind === 'sync' ? ranks.filter((rank) => !this.#collected.has(rank)) : []
  }

  /**
   * Writes a checkpoint of the current version, after those under way. Rejects on failure, after calling `onFailed`.
   */
  save(onFailed?: (error: unknown) => void): Promise<void> {
    return this.#checkpoints.write(() => this.#copy(), onFailed)
  }

  /** Stops timers and waits for the checkpoint under way. */
  async close(): Promise<void> {
    clearTimeout(this.#barrier)
    this.abortReason ??= 'the server is stopping'
    this.#changes.emit('change')
    await this.#checkpoints.settle()
  }

  #decide(key: PushKey): PushDecision {
    const { mode, workers } = this.options
    const { epoch, version, lastSteps } = this
    const arrived = new Set(this.#collected.keys())
    return decidePush({ mode, workers, epoch, version, lastSteps, arrived, lost: this.#lost }, key)
  }

  async #collect(key: PushKey, collected: CollectedGradient): Promise<PushOutcome> {
    const [rank, first] = [...this.#collected][0] ?? [key.rank, collected]
    if (first.learningRate !== collected.learningRate) {
      const rates = [collected, first].map(({ learningRate }) => learningRate ?? 'no learning rate')
      const message = `rank ${key.rank}, step ${key.step}: it pushes with ${rates[0]}, rank ${rank} with ${rates[1]}`
      return { kind: 'refuse', reason: 'rate', message }
    }
    this.#collected.set(key.rank, collected)
    const isWhole = this.#collected.size === this.options.workers
    if (!isWhole) this.#barrier ??= setTimeout(() => void this.#giveUpWaiting(), this.options.lostAfterMs)
    const unsaved = isWhole ? await this.#finishStep() : undefined
    return unsaved ?? { kind: this.#collected.size === 0 ? 'applied' : 'waiting', version: this.version }
  }

  async #finishStep(): Promise<PushOutcome | undefined> {
    clearTimeout(this.#barrier)
    this.#barrier = undefined
    const ranks = [...this.#collected.keys()].sort((a, b) => a - b)
    const pushes = ranks.map((rank) => this.#collected.get(rank)!)
    for (const rank of ranks) this.lastSteps[rank] = this.#collected.get(rank)!.step
    this.#collected.clear()
    const { isMean } = this.options
    const gradients = pushes.map(({ gradient }) => gradient)
    const update = {
      gradient: reduceGradients(gradients, isMean ? 'mean' : 'sum'),
      largest: pushes.reduce((sum, { largest }) => sum + largest, 0),
      absent: new Set(
        pushes[0]!.absent?.filter((slot) => pushes.every((push) => push.absent?.includes(slot))),
      ),
      settings: this.#settingsFor(pushes[0]!),
    }
    if (!isMean) averageBuffers(update.gradient, this.layout!.slots, pushes.length)
    const overflow = this.state!.explainOverflow(update, () => update.gradient.slice())
    if (overflow === undefined) this.state!.apply(update, ++this.version)
    else this.abortReason = `step ${this.version}: the gradients of all ranks together ${overflow}`
    return await this.#settle()
  }

  #settingsFor({ learningRate }: PushExtras): OptimizerSettings {
    return learningRate === undefined ? this.#optimizer : { ...this.#optimizer, learningRate }
  }

  get #progress() {
    return { mode: this.options.mode, lastSteps: this.lastSteps, lost: this.#lost }
  }

  /** Notes that a push of ssp or async mode was applied, and restarts the timeout of ranks that wait for this one. */
  #advance({ rank, step }: PushKey): void {
    this.lastSteps[rank] = step
    clearTimeout(this.#barrier)
    this.#barrier = undefined
    const { mode } = this.options
    const next = 1 + Math.max(...this.lastSteps)
    if (mode.kind === 'ssp' && next - step - 1 <= mode.bound) this.#lost.delete(rank)
  }

  /** Call it when no rank has moved for `lostAfterMs` and some hold up `step`: names them, or goes on without them. */
  #giveUpHolding(step: number): void {
    this.#barrier = undefined
    const holding = findHolding(this.#progress, step)
    const { lost, lostAfterMs, workers } = this.options
    if (holding.length === 0) return
    if (lost.kind === 'quorum' && workers - this.#lost.size - holding.length >= lost.quorum)
      for (const rank of holding) this.#lost.add(rank)
    else
      this.abortReason = `step ${step} waits for rank ${holding.join(', ')}, and no rank has pushed for ${lostAfterMs} ms`
    this.#changes.emit('change')
  }

  async #giveUpWaiting(): Promise<unknown> {
    this.#barrier = undefined
    const { lost, lostAfterMs } = this.options
    if (lost.kind === 'quorum' && this.#collected.size >= lost.quorum) return this.#finishStep()
    const missing = this.missingRanks().join(', ')
    this.abortReason = `step ${this.version}: no gradient from rank ${missing} within ${lostAfterMs} ms`
    this.#changes.emit('change')
    return undefined
  }

  /**
   * Ends an update: writes a checkpoint if one is due, then answers the waiting pulls. If the checkpoint fails, the job
   * ends.
   */
  async #settle(): Promise<PushOutcome | undefined> {
    const end = (error: unknown) => {
      this.abortReason ??= `version ${this.version}: ${this.#checkpoints.explain(error)}`
    }
    const isDue = this.version - this.#checkpoints.version >= this.options.checkpointEvery
    const saved = isDue ? this.save(end) : Promise.resolve()
    const refusal = await saved.then(
      () => undefined,
      () => this.#findAbort(),
    )
    this.#changes.emit('change')
    return refusal
  }

  async #saveOr(undo: () => void): Promise<void> {
    await this.save(undo)
      .catch((error: unknown) => {
        throw new DscError('PARAMS_REFUSED', this.#checkpoints.explain(error), { cause: error })
      })
      .finally(() => this.#changes.emit('change'))
  }

  #copy(): Checkpoint | undefined {
    const { epoch, version, options } = this
    const settings = { optimizer: this.#optimizer, startedWith: options.optimizer }
    const training = this.state?.copy()
    return training && { ...training, ...settings, epoch, version, lastSteps: this.lastSteps.slice() }
  }

  #findAbort(): PushOutcome | undefined {
    const { abortReason: message } = this
    return message === undefined ? undefined : { kind: 'refuse', reason: 'aborted', message }
  }
}
