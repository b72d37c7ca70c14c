import type { ThinLink } from '../exchange-answer.js'
import { callSeconds, ringCallCost } from './cost-model.js'
import { countElements } from './gradient.js'
import { planOptimum } from './optimum.js'
import type { ExchangeInput } from './plan-exchange.js'
import { simulateBuckets } from './simulate-buckets.js'

/** Forward is not in profiles and counts as half of backward. */
const FORWARD_SHARE = 0.5
/** Below this share of computing no compression counts as worthwhile. */
const WORTH_SHARE = 0.5
const EXCHANGE_SHARE = 0.1
/**
 * DiLoCo (Douillard et al. 2023, arXiv 2311.08105) trained with up to this many steps between two exchanges at little
 * loss.
 */
const MOST_LOCAL_STEPS = 500

/**
 * Checks whether synchronous steps can be worthwhile at all: with one bit per value, fewer than any compression keeps
 * that sends all values, and buckets cut as the optimum would. Undefined if they can. Pure.
 */
export function findThinLink(input: Omit<ExchangeInput, 'wireBytes' | 'useOptimum'>): ThinLink | undefined {
  const { gradients, ranks, link, backwardSeconds } = input
  if (ranks === 1) return undefined
  const cost = ringCallCost(link, ranks)
  const forwardSeconds = FORWARD_SHARE * backwardSeconds
  const computeSeconds = forwardSeconds + backwardSeconds
  const stepSeconds = (bytesPerElement: number) => {
    const wire = { bytesPerElement, cost }
    return forwardSeconds + simulateBuckets(gradients, planOptimum(gradients, wire), wire).finishSeconds
  }
  const oneBitSeconds = stepSeconds(1 / 8)
  const bestSyncShare = computeSeconds / oneBitSeconds
  if (bestSyncShare >= WORTH_SHARE) return undefined
  // All parameters in one call, in float32 as averagers send them; nothing is computed during the call.
  const outerSeconds = callSeconds(cost, 4 * countElements(gradients))
  const localSteps = Math.ceil((outerSeconds * (1 - EXCHANGE_SHARE)) / (EXCHANGE_SHARE * computeSeconds))
  const figures = {
    bestSyncShare,
    oneBitStepMs: 1000 * oneBitSeconds,
    halfStepMs: 1000 * stepSeconds(2),
    localSteps,
    localStepMs: 1000 * (computeSeconds + outerSeconds / localSteps),
  }
  return { ...figures, explanation: explain(figures, 1000 * computeSeconds) }
}

function explain(figures: Omit<ThinLink, 'explanation'>, computeMs: number): string {
  const { bestSyncShare, oneBitStepMs, halfStepMs, localSteps, localStepMs } = figures
  const ms = (value: number) => `${value.toFixed(0)} ms`
  const hard =
    localSteps > MOST_LOCAL_STEPS
      ? ` That is more than the ${MOST_LOCAL_STEPS} that were shown to train well: fewer ranks or a faster link are the other way.`
      : ' It is another training method: its loss has to be looked at.'
  return (
    `This link is too thin for synchronous steps: no compression that sends every value can pay. A step computes for ${ms(computeMs)} and takes ` +
    `${ms(halfStepMs)} with halves; with one bit per value, and converting free, it would still take ${ms(oneBitStepMs)}, ` +
    `of which ranks compute ${(100 * bestSyncShare).toFixed(0)} %. What can: ${localSteps} local steps of each rank between ` +
    `two exchanges with an outer step (DiLoCo in torchft, PostLocalSGDOptimizer in PyTorch), ${ms(localStepMs)} per step.` +
    `${hard} dsc itself stays synchronous.`
  )
}
