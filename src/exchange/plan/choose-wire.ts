import { ringCallCost } from './cost-model.js'
import type { Gradient } from './gradient.js'
import { type ExchangeInput, planBuckets } from './plan-exchange.js'
import { simulateBuckets } from './simulate-buckets.js'

/** The type on the wire, and the reason. */
export interface WireChoice {
  readonly wire: 'fp16' | 'fp32'
  /** One or two sentences. */
  readonly explanation: string
  /** Predicted seconds from the start of backward to the last mean; undefined if conversion was not measured. */
  readonly fp16Seconds?: number
  readonly fp32Seconds?: number
}

/**
 * Chooses between half precision, which sends half the bytes but converts every value twice, and fp32.
 * `halfValuesPerSecond`: values that one rank narrows, widens and checks per second, > 0; undefined if unknown. Assumes
 * that conversion takes time from backward, so that earlier conversions delay its gradients.
 */
export function chooseWire(
  input: Omit<ExchangeInput, 'wireBytes' | 'useOptimum'>,
  halfValuesPerSecond: number | undefined,
): WireChoice {
  if (input.ranks === 1) return { wire: 'fp32', explanation: 'One rank sends nothing.' }
  if (input.gradientBytes < 4) {
    return { wire: 'fp16', explanation: 'The gradients are in half precision already.' }
  }
  if (halfValuesPerSecond === undefined) {
    return {
      wire: 'fp16',
      explanation:
        'fp16 halves the bytes; what converting costs was not measured, so it may lose on a fast link (dsc.exchange.probe_link measures it).',
    }
  }
  const fp32Seconds = predictSeconds(input, input.gradients, 4)
  let converted = 0
  const delayed = input.gradients.map((gradient) => {
    converted += gradient.elements
    return { ...gradient, readySeconds: gradient.readySeconds + converted / halfValuesPerSecond }
  })
  const fp16Seconds = predictSeconds(input, delayed, 2)
  const conversion = formatMs(converted / halfValuesPerSecond)
  const [half, full] = [formatMs(fp16Seconds), formatMs(fp32Seconds)]
  const gigabits = ((input.link.bandwidthBytesPerSecond * 8) / 1e9).toFixed(1)
  return fp16Seconds < fp32Seconds
    ? {
        wire: 'fp16',
        fp16Seconds,
        fp32Seconds,
        explanation: `fp16: at ${gigabits} Gb/s half the bytes save more than the ${conversion} of converting cost; backward with its exchange takes ${half} instead of ${full}.`,
      }
    : {
        wire: 'fp32',
        fp16Seconds,
        fp32Seconds,
        explanation: `fp32, no compression: at ${gigabits} Gb/s converting costs ${conversion}, more than half the bytes save; backward with its exchange takes ${full} instead of ${half} with fp16.`,
      }
}

function predictSeconds(
  input: Omit<ExchangeInput, 'wireBytes' | 'useOptimum'>,
  gradients: readonly Gradient[],
  wireBytes: 2 | 4,
): number {
  const { buckets } = planBuckets({ ...input, gradients, wireBytes })
  return simulateBuckets(gradients, buckets, {
    bytesPerElement: wireBytes,
    cost: ringCallCost(input.link, input.ranks),
  }).finishSeconds
}

function formatMs(seconds: number): string {
  return `${(seconds * 1000).toFixed(seconds < 0.1 ? 1 : 0)} ms`
}
