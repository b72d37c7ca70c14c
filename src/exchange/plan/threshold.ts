import type { CallCost } from './cost-model.js'

/** The input of the threshold. */
interface ThresholdInput {
  readonly ranks: number
  /** L: layers whose gradients are exchanged, ≥ 1. */
  readonly layers: number
  /** E: mean seconds of one backward pass. */
  readonly backwardSeconds: number
  /** S: wire bytes of one step, after compression. */
  readonly wireBytes: number
  readonly cost: CallCost
}

/** The rule that set the threshold. */
type ThresholdRule = 'alone' | 'stable' | 'saturated' | 'one layer' | 'one bucket'

/** How full the buffer must be before it is exchanged, and why. */
export interface Threshold {
  /** θ in layers, 1 … L. */
  readonly layers: number
  /** θ in wire bytes, S·layers/L. */
  readonly bytes: number
  /** n₁ = A·L/(E − c·S): the least fusion at which each exchange ends before the next begins. Infinite if E ≤ c·S. */
  readonly stableLayers: number
  /** n₂ = L·√(A/E): the best fusion of a channel that is always busy. */
  readonly saturatedLayers: number
  readonly rule: ThresholdRule
  /** One or two sentences that name the deciding rule and the reason. */
  readonly explanation: string
}

/**
 * Computes the exchange threshold θ = min(n₁, n₂) clamped to [1, L].
 * Fusing n of L equal layers per call, calls do not queue up if n·E/L ≥ A + c·S·n/L, that is n ≥ n₁;
 * more fusion than that only delays the last call. If they do queue up, the end is
 * n·E/L + (L/n)·A + c·S, least at n₂. The two ends are equal where n = n₁.
 */
export function planThreshold(input: ThresholdInput): Threshold {
  const { ranks, layers, backwardSeconds, wireBytes, cost } = input
  const busySeconds = cost.secondsPerByte * wireBytes
  const spareSeconds = backwardSeconds - busySeconds
  const stableLayers =
    spareSeconds > 0 ? (cost.callSeconds * layers) / spareSeconds : Number.POSITIVE_INFINITY
  const saturatedLayers = layers * Math.sqrt(cost.callSeconds / backwardSeconds)
  const asked = Math.min(stableLayers, saturatedLayers)
  const chosen = Math.min(layers, Math.max(1, asked))
  const rule: ThresholdRule =
    ranks === 1
      ? 'alone'
      : asked < 1
        ? 'one layer'
        : asked > layers
          ? 'one bucket'
          : stableLayers <= saturatedLayers
            ? 'stable'
            : 'saturated'
  return {
    layers: chosen,
    bytes: (wireBytes * chosen) / layers,
    stableLayers,
    saturatedLayers,
    rule,
    explanation: explain(rule, input, busySeconds),
  }
}

function explain(rule: ThresholdRule, input: ThresholdInput, busySeconds: number): string {
  const { ranks, layers, backwardSeconds, cost } = input
  const backward = formatMs(backwardSeconds)
  const busy = formatMs(busySeconds)
  const call = formatMs(cost.callSeconds)
  const load =
    busySeconds >= backwardSeconds
      ? `The link is the bottleneck: the bytes alone take ${busy}, backward only ${backward}; fewer bytes would help more than any fusion.`
      : `The bytes take ${busy} of the ${backward} that backward lasts, so they can hide behind it.`
  switch (rule) {
    case 'alone':
      return 'One rank has nobody to exchange with: no threshold is needed.'
    case 'one layer':
      return `${load} A call costs only ${call}: every layer may be sent as soon as it is ready.`
    case 'one bucket':
      return `${load} A call costs ${call}, more than fusing all ${layers} layers could save: everything is sent at once.`
    case 'stable':
      return `${load} The first term rules: at ${call} per call among ${ranks} ranks, this is the least fusion at which each exchange ends before the next one begins; more would only delay the last one.`
    case 'saturated':
      return `${load} The second term rules: the channel is always busy, and L·√(A/E) balances ${call} per call against waiting for a fuller buffer.`
  }
}

function formatMs(seconds: number): string {
  const ms = seconds * 1000
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toPrecision(2)} ms`
}
