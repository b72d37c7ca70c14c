import { ringCallCost, swapLink } from './cost-model.js'
import type { Gradient } from './gradient.js'
import { type ExchangeInput, planBuckets } from './plan-exchange.js'
import { simulateBuckets } from './simulate-buckets.js'
import { meanBytes, type WireType } from './wire-type.js'

/** Values that one rank converts to a type, and back, per second; undefined if not measured. */
export interface ConversionRates {
  readonly halfValuesPerSecond?: number | undefined
  readonly int8ValuesPerSecond?: number | undefined
  /** Real exchanges between this many ranks; undefined if not measured. */
  readonly exchanges?: MeasuredExchanges | undefined
}

/** Exchanges of a type, one after the other: conversion, messages and processors that ranks share included. */
interface MeasuredExchanges {
  readonly ranks: number
  readonly fp16: ExchangeCost
  readonly int8: ExchangeCost
}

interface ExchangeCost {
  /** Seconds per exchange at any size, ≥ 0. */
  readonly callSeconds: number
  readonly secondsPerValue: number
}

/** The placement of ranks. */
interface Placement {
  readonly ranksPerHost: number
  readonly levels: 1 | 2
}

/** A type, and the predicted seconds from the start of backward to the last mean. */
interface WireCandidate {
  readonly wire: WireType
  readonly seconds: number
  readonly conversionSeconds: number
}

/** The type on the wire, and the reason. */
export interface WireChoice {
  readonly wire: WireType
  /** One to three sentences. */
  readonly explanation: string
  /** Everything compared, the shortest first; empty if nothing was. */
  readonly candidates: readonly WireCandidate[]
}

type WireInput = Omit<ExchangeInput, 'wireBytes' | 'useOptimum'>

/**
 * Chooses between fp32, half precision and block-wise int8: fewer bytes, but every value is converted twice. Assumes
 * that conversion takes time from backward, so that earlier conversions delay its gradients.
 */
export function chooseWire(input: WireInput, rates: ConversionRates, placement: Placement): WireChoice {
  if (input.ranks === 1) return { wire: 'fp32', explanation: 'One rank sends nothing.', candidates: [] }
  if (rates.halfValuesPerSecond === undefined) {
    const explanation =
      input.gradientBytes < 4
        ? 'The gradients are in half precision already.'
        : 'fp16 halves the bytes. The cost of converting was not measured, so fp32 may be faster on a fast link, and int8 on a slow one: measure the link with dsc.exchange.probe_link.'
    return { wire: 'fp16', explanation, candidates: [] }
  }
  const costs: [WireType, number | undefined][] = [
    // Gradients that are halves do not become larger to be sent.
    ['fp32', input.gradientBytes < 4 ? undefined : Number.POSITIVE_INFINITY],
    ['fp16', rates.halfValuesPerSecond],
    ['int8', rates.int8ValuesPerSecond],
  ]
  const candidates = costs
    .flatMap(([wire, valuesPerSecond]) =>
      valuesPerSecond === undefined ? [] : predict(input, { wire, valuesPerSecond, placement, rates }),
    )
    .sort((a, b) => a.seconds - b.seconds) // of equals, the most exact
  const absent =
    rates.int8ValuesPerSecond === undefined
      ? ' int8 was not compared: the link file has no rate for it. Measure the link with dsc.exchange.probe_link.'
      : ''
  return { wire: candidates[0]!.wire, explanation: explain(input, candidates) + absent, candidates }
}

/** A type, and the values that one rank converts to it, and back, per second. */
interface Rated {
  readonly wire: WireType
  readonly valuesPerSecond: number
  readonly placement: Placement
}

function predict(
  input: WireInput,
  { wire, valuesPerSecond, placement, rates }: Rated & { readonly rates: ConversionRates },
): WireCandidate {
  const perValue = delayPerValue({ ...rates, ranks: input.ranks }, { wire, valuesPerSecond, placement })
  let converted = 0
  const gradients: Gradient[] = input.gradients.map((gradient) => {
    converted += gradient.elements
    return { ...gradient, readySeconds: gradient.readySeconds + perValue * converted }
  })
  const link = wireLink({ ...input, exchanges: rates.exchanges }, wire, placement)
  const wireBytes = meanBytes(wire, gradients)
  const { buckets } = planBuckets({ ...input, gradients, link, wireBytes })
  const channel = { bytesPerElement: wireBytes, cost: ringCallCost(link, input.ranks) }
  const seconds = simulateBuckets(gradients, buckets, channel).finishSeconds
  return { wire, seconds, conversionSeconds: converted / valuesPerSecond }
}

/** The link as a planner of rings has to see it for values of this type: as measured between as many ranks, if it was. */
export function wireLink(
  {
    link,
    ranks,
    gradients,
    exchanges,
  }: Pick<ExchangeInput, 'link' | 'ranks' | 'gradients'> & ConversionRates,
  wire: WireType,
  { ranksPerHost, levels }: Placement,
): ExchangeInput['link'] {
  const measured = measuredCost({ ranks, exchanges }, { wire, levels })
  if (measured) {
    const { callSeconds, secondsPerValue } = measured
    const messages = 2 * (ranks - 1)
    return {
      alphaSeconds: callSeconds / messages,
      bandwidthBytesPerSecond: (messages * meanBytes(wire, gradients)) / (ranks * secondsPerValue),
    }
  }
  // In two levels one rank of each host is on the network, and `ranks` counts those.
  return wire === 'int8' ? swapLink(link, ranks, levels === 2 ? 1 : ranksPerHost) : link
}

/**
 * Seconds by which converting a value delays later gradients. A measured exchange has all conversion in it, which
 * therefore takes no longer; only the first half of that comes before a gradient is sent.
 */
function delayPerValue(
  rates: ConversionRates & { readonly ranks: number },
  { wire, valuesPerSecond, placement }: Rated,
): number {
  const measured = measuredCost(rates, { wire, levels: placement.levels })
  return measured ? Math.min(1 / valuesPerSecond, measured.secondsPerValue) / 2 : 1 / valuesPerSecond
}

/** The cost of an exchange, if it was measured between as many ranks; measurements are of one level. */
function measuredCost(
  { ranks, exchanges }: ConversionRates & { readonly ranks: number },
  { wire, levels }: { readonly wire: WireType; readonly levels: Placement['levels'] },
): ExchangeCost | undefined {
  return wire !== 'fp32' && levels === 1 && exchanges?.ranks === ranks ? exchanges[wire] : undefined
}

function explain(input: WireInput, candidates: readonly WireCandidate[]): string {
  const [best, ...others] = candidates
  const { wire, seconds, conversionSeconds } = best!
  const instead = others.map((other) => `${formatMs(other.seconds)} with ${other.wire}`).join(' and ')
  const predicted =
    instead === '' ? '' : `; backward with its exchange takes ${formatMs(seconds)} instead of ${instead}`
  const gigabits = ((input.link.bandwidthBytesPerSecond * 8) / 1e9).toFixed(1)
  const cost = formatMs(conversionSeconds)
  switch (wire) {
    case 'fp32': {
      const half = formatMs(others.find((other) => other.wire === 'fp16')!.conversionSeconds)
      return `fp32, no compression: at ${gigabits} Gb/s converting costs ${half}, more than sending half the bytes saves${predicted}.`
    }
    case 'fp16':
      return input.gradientBytes < 4
        ? `fp16: the gradients are in half precision already${predicted}.`
        : `fp16: at ${gigabits} Gb/s sending half the bytes saves more than converting costs (${cost})${predicted}.`
    case 'int8': {
      const percent = ((100 * meanBytes(wire, input.gradients)) / input.gradientBytes).toFixed(0)
      return `int8: at ${gigabits} Gb/s sending ${percent} % of the bytes saves more than converting costs (${cost})${predicted}.`
    }
  }
}

function formatMs(seconds: number): string {
  return `${(seconds * 1000).toFixed(seconds < 0.1 ? 1 : 0)} ms`
}
