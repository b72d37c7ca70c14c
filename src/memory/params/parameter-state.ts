import { stepParameters } from './plan/optimizer.js'
import type { OptimizerSettings, UpdateState } from './plan/optimizer-settings.js'
import { STATE_COUNTS } from './plan/optimizer-settings.js'
import {
  layOutParameters,
  type ParameterLayout,
  type ParameterSlot,
  type PlacedSlot,
} from './plan/parameter-layout.js'
import { clipGradient } from './plan/reduce-gradients.js'
import { advanceRange, findOverflow, isSafe, measureRange, type UpdateRange } from './plan/update-range.js'

/** One update: the gradient of every parameter and the values of every buffer, in the layout. */
interface ParameterUpdate {
  readonly gradient: Float32Array
  /** Upper bound of the magnitudes in `gradient`. */
  readonly largest: number
  /** Slots without a gradient on any rank: they stay unchanged, like a parameter without `grad` in PyTorch. */
  readonly absent: ReadonlySet<number>
  readonly settings: OptimizerSettings
}

/** The parts of a state; it takes ownership of all arrays. */
export interface ParameterStateParts {
  readonly slots: readonly ParameterSlot[]
  readonly parameters: Float32Array
  /** As many as the optimizer keeps. */
  readonly moments: readonly Float32Array[]
  /** Number of steps of each slot. */
  readonly steps: readonly number[]
}

/** The parameters of a job with their optimizer state: float32, even if workers hold halves. */
export class ParameterState implements UpdateState {
  readonly layout: ParameterLayout
  readonly parameters: Float32Array
  readonly moments: readonly Float32Array[]
  /** Number of steps of each slot. */
  readonly steps: number[]
  /** Version at which each slot last changed: needed for a delta pull. */
  readonly changedAt: number[]
  #range: UpdateRange

  /** `version`: that of the given parameters. */
  constructor({ slots, parameters, moments, steps }: ParameterStateParts, version: number) {
    this.layout = layOutParameters(slots)
    this.parameters = parameters
    this.moments = moments
    this.steps = [...steps]
    this.changedAt = slots.map(() => version)
    this.#range = measureRange(this)
  }

  /** Applies one update in place, which makes `version`. */
  apply(update: ParameterUpdate, version: number): void {
    const { gradient, settings } = update
    const range = this.#advance(update)
    this.#clip(update)
    for (const { slot, index } of this.#present(update)) {
      const { offset, length } = slot
      if (slot.kind === 'buffer') {
        this.parameters.set(gradient.subarray(offset, offset + length), offset)
        this.changedAt[index] = version
        continue
      }
      const step = ++this.steps[index]!
      const own = settingsOf(slot, settings)
      if (stepParameters(this, gradient, { settings: own, offset, length, step }))
        this.changedAt[index] = version
    }
    // Bounds only grow. When they become useless, they are measured again from the values.
    this.#range = isSafe(range) ? range : measureRange(this)
  }

  /** Names the parameter that an update would make infinite, with the gradient from `getGradient`; undefined: none. */
  explainOverflow(
    bounds: Omit<ParameterUpdate, 'gradient'>,
    getGradient: () => Float32Array,
  ): string | undefined {
    if (isSafe(this.#advance(bounds))) return undefined
    const update = { ...bounds, gradient: getGradient() }
    this.#clip(update)
    for (const { slot, index } of this.#present(update)) {
      if (slot.kind === 'buffer') continue
      const { offset, length } = slot
      const range = {
        settings: settingsOf(slot, update.settings),
        offset,
        length,
        step: this.steps[index]! + 1,
      }
      const at = findOverflow(this, update.gradient, range)
      if (at === undefined) continue
      const values = [update.gradient[at]!, this.parameters[at]!]
      const [added, present] = values.map((value) => value.toExponential(1))
      return `would make ${slot.name} infinite: ${added} on top of ${present}`
    }
    return undefined
  }

  /** The whole state, as a checkpoint stores it. */
  copy(): ParameterStateParts {
    return {
      slots: this.layout.slots,
      steps: this.steps.slice(),
      parameters: this.parameters.slice(),
      moments: this.moments.map((values) => values.slice()),
    }
  }

  #present({ absent }: Pick<ParameterUpdate, 'absent'>): { slot: PlacedSlot; index: number }[] {
    return this.layout.slots.map((slot, index) => ({ slot, index })).filter(({ index }) => !absent.has(index))
  }

  #clip({ gradient, settings }: ParameterUpdate): void {
    if (settings.maxNorm === undefined) return
    const trained = this.layout.slots.filter(({ kind }) => kind !== 'buffer')
    clipGradient(gradient, trained, settings.maxNorm)
  }

  #advance({ largest, settings }: Omit<ParameterUpdate, 'gradient'>): UpdateRange {
    const most = Math.min(largest, settings.maxNorm ?? Number.POSITIVE_INFINITY)
    const ranges = this.layout.slots.map((slot) =>
      advanceRange(this.#range, most, settingsOf(slot, settings)),
    )
    const maximum = (name: keyof UpdateRange) => Math.max(...ranges.map((range) => range[name]))
    return { parameter: maximum('parameter'), velocity: maximum('velocity') }
  }
}

/** A state that begins with a worker's `values`, in the layout of `slots`; undefined if they do not fit it. */
export function beginState(
  slots: readonly ParameterSlot[],
  values: Float32Array,
  kind: OptimizerSettings['kind'],
): ParameterState | undefined {
  if (values.length !== layOutParameters(slots).length) return undefined
  const moments = Array.from({ length: STATE_COUNTS[kind] }, () => new Float32Array(values.length))
  return new ParameterState({ slots, parameters: values.slice(), moments, steps: slots.map(() => 0) }, 0)
}

function settingsOf(slot: ParameterSlot, settings: OptimizerSettings): OptimizerSettings {
  const { weightDecay = settings.weightDecay, rateScale = 1 } = slot
  if (weightDecay === settings.weightDecay && rateScale === 1) return settings
  return { ...settings, weightDecay, learningRate: settings.learningRate * rateScale }
}
