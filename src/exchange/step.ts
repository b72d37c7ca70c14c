import { setImmediate as yieldToSockets } from 'node:timers/promises'
import { DscError } from '../failure/dsc-error.js'
import type { OnWaiting } from './all-reduce.js'
import type { Mode } from './connect-links.js'
import { type BucketResult, exchangeBucket } from './exchange-bucket.js'
import type { FusionBuffers } from './fusion-buffers.js'
import type { Membership } from './membership.js'
import type { ScaleState } from './plan/scale.js'
import type { PlanFile } from './plan-files.js'

/** One exchange of all gradients. */
export interface ExchangeStep {
  /**
   * Takes one gradient; in any order, but the plan's order overlaps best. A bucket whose last gradient comes is sent
   * at once. `gradient` is copied, and written only by `commit`. Resolves after sockets had a chance to move.
   */
  readonly add: (name: string, gradient: Float32Array) => Promise<void>
  /** Waits for all buckets on all ranks, then writes the means over the gradients that were added: all or none. */
  readonly commit: () => Promise<StepReport>
}

/** What a step did. */
export interface StepReport {
  /** Steps committed so far, this one included. */
  readonly step: number
  readonly buckets: readonly Pick<BucketResult, 'wireType' | 'exponent' | 'outcome'>[]
}

/** What a step works on. */
export interface StepContext {
  readonly plan: PlanFile
  readonly mode: Mode
  readonly fusion: FusionBuffers
  readonly membership: Membership
  /** Number of this step, from 0. */
  readonly step: number
  readonly scales: readonly ScaleState[]
  readonly onBucket: (bucket: number) => void
  readonly onWaiting: OnWaiting
  readonly onCommitted: (scales: readonly ScaleState[]) => void
}

/** Begins a step: buckets leave one after the other, in the plan's order, as they fill. */
export function beginStep(context: StepContext): ExchangeStep {
  const { plan, mode, fusion, membership, step, scales, onBucket, onWaiting } = context
  const { buffers, places } = fusion
  const added = new Map<string, Float32Array>()
  const missing = plan.buckets.map(({ tensors }) => tensors.length)
  const results: BucketResult[] = []
  let channel = Promise.resolve()
  let launched = 0

  const exchange = async (bucket: number) => {
    membership.check()
    onBucket(bucket)
    results[bucket] = await exchangeBucket(membership.links, buffers[bucket]!, {
      mode,
      wire: plan.wire,
      tensors: plan.buckets[bucket]!.tensors.length,
      scale: scales[bucket]!,
      place: { epoch: membership.welcome.epoch, step, bucket },
      onWaiting,
    })
  }
  const launch = (bucket: number) => {
    channel = channel.then(() => exchange(bucket))
    channel.catch((error: Error) => {
      onWaiting(undefined, undefined)
      membership.abort(error)
    })
  }
  return {
    async add(name, gradient) {
      membership.check()
      const place = places.get(name)
      const problem = !place
        ? 'is not in the plan'
        : added.has(name)
          ? `was added twice in step ${step}`
          : place.elements !== gradient.length
            ? `has ${gradient.length} values, the plan says ${place.elements}`
            : undefined
      if (!place || problem)
        throw misuse(`gradient ${name} ${problem}`, 'make a new plan with `dsc exchange plan`')
      added.set(name, gradient)
      buffers[place.bucket]!.local.set(gradient, place.offset)
      missing[place.bucket]!--
      // In the plan's order on every rank, whatever the order of completion: ranks must agree on it.
      while (launched < missing.length && missing[launched] === 0) launch(launched++)
      await yieldToSockets()
    },
    async commit() {
      membership.check()
      if (launched < buffers.length) {
        const absent = [...places.keys()].find((name) => !added.has(name))
        throw misuse(
          `gradient ${absent} is missing in step ${step}`,
          'add zeros for a parameter that was not used',
        )
      }
      await channel.catch(() => {}) // the membership knows why, and maybe better
      membership.check()
      await membership.agree(step + 1)
      for (const [bucket, result] of results.entries()) buffers[bucket]!.decode(result)
      for (const [name, gradient] of added) {
        const { bucket, offset, elements } = places.get(name)!
        gradient.set(buffers[bucket]!.local.subarray(offset, offset + elements))
      }
      context.onCommitted(results.map(({ nextScale }) => nextScale))
      const buckets = results.map(({ wireType, exponent, outcome }) => ({ wireType, exponent, outcome }))
      return { step: step + 1, buckets }
    },
  }
}

function misuse(message: string, hint: string): DscError {
  return new DscError('EXCHANGE_MISMATCH', message, { hint })
}
