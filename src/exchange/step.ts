import { setImmediate as yieldToSockets } from 'node:timers/promises'
import { DscError } from '../failure/dsc-error.js'
import type { OnWaiting } from './all-reduce.js'
import type { Mode } from './connect-links.js'
import { type BucketResult, exchangeBucket } from './exchange-bucket.js'
import type { FusionBuffers } from './fusion-buffers.js'
import { sumOverHost } from './host/host-level.js'
import type { Membership } from './membership.js'
import type { ScaleState } from './plan/scale.js'
import type { PlanFile } from './plan-files.js'

/** Result of a step. */
export interface StepReport {
  /** Steps committed so far, this one included. */
  readonly step: number
  readonly buckets: readonly Pick<BucketResult, 'wireType' | 'exponents' | 'outcome'>[]
}

/** Context of a step. */
interface StepContext {
  readonly plan: PlanFile
  readonly mode: Mode
  readonly fusion: FusionBuffers
  readonly membership: Membership
  /** Number of this step, from 0. */
  readonly step: number
  readonly scales: readonly ScaleState[]
  readonly onBucket: (bucket: number) => void
  /**
   * Receives the rank being waited for: within the host, while buckets are summed there one after the other, or on the
   * network.
   */
  readonly onWaiting: (level: 'host' | 'network') => OnWaiting
  readonly onCommitted: (scales: readonly ScaleState[]) => void
}

/** One exchange of all gradients. Buckets leave one after the other, in the plan's order, as they fill. */
export class ExchangeStep {
  readonly #context: StepContext
  readonly #added = new Map<string, Float32Array>()
  /** Number of gradients that each bucket still waits for. */
  readonly #missing: number[]
  readonly #results: BucketResult[] = []
  /** Settles with the last bucket that left. */
  #channel = Promise.resolve()
  /** Settles with the last bucket summed over the host, while earlier buckets are on the network. */
  #hostChannel = Promise.resolve()
  #launched = 0
  #phase: 'filling' | 'committing' | 'committed' = 'filling'

  constructor(context: StepContext) {
    this.#context = context
    this.#missing = context.plan.buckets.map(({ tensors }) => tensors.length)
  }

  /** Whether other ranks have received any of it before its commit: then no other step can begin. */
  get isUnderWay(): boolean {
    return this.#launched > 0 && this.#phase !== 'committed'
  }

  /**
   * Adds one gradient; in any order, but the plan's order overlaps best. A bucket is sent as soon as its last gradient
   * is added. `gradient` is copied, and written only by `commit`. Resolves after sockets had a chance to make progress.
   */
  async add(name: string, gradient: Float32Array): Promise<void> {
    const { membership, fusion, step } = this.#context
    membership.check()
    const place = fusion.places.get(name)
    const problem = !place
      ? 'is not in the plan'
      : this.#added.has(name)
        ? `was added twice in step ${step}`
        : place.elements !== gradient.length
          ? `has ${gradient.length} values, the plan says ${place.elements}`
          : undefined
    if (!place || problem)
      throw misuse(`gradient ${name} ${problem}`, 'make a new plan with `dsc exchange plan`')
    this.#added.set(name, gradient)
    fusion.buffers[place.bucket]!.local.set(gradient, place.offset)
    this.#missing[place.bucket]!--
    // In the plan's order on every rank, even if buckets fill in another: ranks must agree on it.
    while (this.#missing[this.#launched] === 0) this.#launch(this.#launched++)
    await yieldToSockets()
  }

  /** Waits for all buckets on all ranks, then writes the means over the gradients that were added: all or none. */
  async commit(): Promise<StepReport> {
    const { membership, fusion, step, onCommitted } = this.#context
    membership.check()
    if (this.#launched < fusion.buffers.length) {
      const absent = [...fusion.places.keys()].find((name) => !this.#added.has(name))
      throw misuse(
        `gradient ${absent} is missing in step ${step}`,
        'add zeros for a parameter that was not used',
      )
    }
    if (this.#phase !== 'filling')
      throw misuse(`step ${step} was committed already`, 'begin the next one with beginStep()')
    this.#phase = 'committing'
    await this.#channel.catch(() => {}) // the membership knows why, and maybe better
    membership.check()
    await membership.agree(step + 1)
    this.#writeMeans()
    onCommitted(this.#results.map(({ nextScale }) => nextScale))
    this.#phase = 'committed'
    const buckets = this.#results.map(({ wireType, exponents, outcome }) => ({
      wireType,
      exponents,
      outcome,
    }))
    return { step: step + 1, buckets }
  }

  #launch(bucket: number): void {
    if (this.#context.plan.levels === 2)
      this.#hostChannel = this.#hostChannel.then(() => this.#sumOverHost(bucket))
    const [before, summed] = [this.#channel, this.#hostChannel]
    this.#channel = Promise.all([before, summed]).then(() => this.#exchange(bucket))
    this.#channel.catch((error: Error) => {
      for (const level of ['host', 'network'] as const) this.#context.onWaiting(level)(undefined, undefined)
      this.#context.membership.abort(error)
    })
  }

  async #sumOverHost(bucket: number): Promise<void> {
    const { fusion, membership, step, onWaiting } = this.#context
    membership.check()
    const { links, welcome } = membership
    const place = { epoch: welcome.epoch, step, bucket, rank: welcome.rank }
    const context = { ...place, wireType: 'fp32', scales: 0, attempt: 0 } as const
    await sumOverHost(links, fusion.buffers[bucket]!, { context, onWaiting: onWaiting('host') })
  }

  async #exchange(bucket: number): Promise<void> {
    const { plan, mode, fusion, membership, step, scales, onBucket, onWaiting } = this.#context
    membership.check()
    onBucket(bucket)
    this.#results[bucket] = await exchangeBucket(membership.links, fusion.buffers[bucket]!, {
      mode,
      wire: plan.wire,
      tensors: plan.buckets[bucket]!.tensors.length,
      scale: scales[bucket]!,
      place: { epoch: membership.welcome.epoch, step, bucket },
      onWaiting: onWaiting('network'),
    })
  }

  #writeMeans(): void {
    const { buffers, places } = this.#context.fusion
    for (const [bucket, result] of this.#results.entries()) buffers[bucket]!.decode(result)
    for (const [name, gradient] of this.#added) {
      const { bucket, offset, elements } = places.get(name)!
      gradient.set(buffers[bucket]!.local.subarray(offset, offset + elements))
    }
  }
}

function misuse(message: string, hint: string): DscError {
  return new DscError('EXCHANGE_MISMATCH', message, { hint })
}
