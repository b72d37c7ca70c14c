import type { ShardedUnit, UnitAlternative, UnitPlan } from '../exchange-answer.js'
import { type CallCost, callSeconds, type Link } from './cost-model.js'
import type { Gradient } from './gradient.js'

/** A block and its cost, in the order of the forward. */
interface Block extends ShardedUnit {
  readonly backwardSeconds: number
}

/** Forward is not in profiles and counts as half of backward. */
const FORWARD_SHARE = 0.5
/** Smaller units, which need less memory, are preferred if they cost at most this much more. */
const MEMORY_WORTH = 1.01
const PREFETCHES = [1, 2]

interface UnitsInput {
  readonly gradients: readonly Gradient[]
  readonly ranks: number
  readonly link: Link
  readonly parameterBytes: number
  readonly gradientWireBytes: number
}

/**
 * Chooses how many neighboring blocks a unit has and how far ahead parameters are gathered: of the ways within 1 % of
 * the shortest predicted step, the one that gathers least. `gradientWireBytes`: 2 with dsc's scaled halves.
 */
export function planUnits(input: UnitsInput): UnitPlan {
  const blocks = findBlocks(input.gradients)
  const sizes = [...new Set([1, 2, 3, 4, 6, 8, 12, 16, blocks.length])].filter(
    (size) => size <= blocks.length,
  )
  const ways = sizes.flatMap((size) =>
    PREFETCHES.map((prefetch) => {
      const units = groupBlocks(blocks, size)
      const name = size === blocks.length ? 'one unit' : size === 1 ? 'every block' : `${size} blocks`
      return { units, figures: { name, ...simulateUnits(units, { ...input, prefetch }) } }
    }),
  )
  const least = Math.min(...ways.map(({ figures }) => figures.stepMs))
  const [best] = ways
    .filter(({ figures }) => figures.stepMs <= least * MEMORY_WORTH)
    .sort((a, b) => a.figures.gatheredBytes - b.figures.gatheredBytes)
  return {
    units: best!.units.map(({ modules, elements }) => ({ modules, elements })),
    chosen: best!.figures,
    alternatives: ways.map(({ figures }) => figures),
  }
}

/**
 * The repeated parts of a model (`blocks.0`, `blocks.1`, …) and those at its top, in the order of the forward. Names
 * are those of parameters; gradients come in backward order.
 */
export function findBlocks(gradients: readonly Gradient[]): Block[] {
  const blocks = new Map<string, { elements: number; backwardSeconds: number }>()
  let readySeconds = 0
  for (const { name, elements, readySeconds: ready } of gradients) {
    const module = nameBlock(name)
    const block = blocks.get(module) ?? { elements: 0, backwardSeconds: 0 }
    block.elements += elements
    block.backwardSeconds += Math.max(0, ready - readySeconds)
    readySeconds = Math.max(readySeconds, ready)
    blocks.set(module, block)
  }
  return [...blocks].map(([module, block]) => ({ modules: [module], ...block })).reverse()
}

/** `transformer.h.3.mlp.weight` → `transformer.h.3`; `head.weight` → `head`; `position` → '' (the model itself). */
function nameBlock(parameter: string): string {
  const path = parameter.split('.')
  const index = path.findIndex((part) => /^\d+$/.test(part))
  return path
    .slice(0, index >= 0 && index < path.length - 1 ? index + 1 : Math.min(1, path.length - 1))
    .join('.')
}

function groupBlocks(blocks: readonly Block[], size: number): Block[] {
  const units: Block[] = []
  for (let at = 0; at < blocks.length; at += size) {
    const members = blocks.slice(at, at + size)
    units.push({
      modules: members.flatMap(({ modules }) => modules),
      elements: members.reduce((sum, { elements }) => sum + elements, 0),
      backwardSeconds: members.reduce((sum, { backwardSeconds }) => sum + backwardSeconds, 0),
    })
  }
  return units
}

/**
 * Runs one step: a channel that carries one call at a time, and a device that computes unit by unit. Forward and
 * backward both gather; a gather ahead starts when the unit that many before it begins to compute. Gradients of a unit
 * are reduced when its backward has ended, and queue behind earlier requests.
 */
function simulateUnits(
  units: readonly Block[],
  options: Omit<UnitsInput, 'gradients'> & { readonly prefetch: number },
): Omit<UnitAlternative, 'name'> {
  const { ranks, link, prefetch, parameterBytes, gradientWireBytes } = options
  const cost = halfRingCost(link, ranks)
  const channel = { freeSeconds: 0 }
  const call = (bytes: number, fromSeconds: number) => {
    channel.freeSeconds = Math.max(channel.freeSeconds, fromSeconds) + callSeconds(cost, bytes)
    return channel.freeSeconds
  }
  let nowSeconds = 0
  const pass = (order: readonly Block[], share: number, afterEach: (unit: Block) => void) => {
    const gathered: number[] = []
    const gatherUpTo = (last: number) => {
      while (gathered.length <= Math.min(last, order.length - 1))
        gathered.push(call(order[gathered.length]!.elements * parameterBytes, nowSeconds))
    }
    for (const [at, unit] of order.entries()) {
      gatherUpTo(at)
      nowSeconds = Math.max(nowSeconds, gathered[at]!)
      gatherUpTo(at + prefetch)
      nowSeconds += share * unit.backwardSeconds
      afterEach(unit)
    }
  }
  pass(units, FORWARD_SHARE, () => {})
  // The last unit of the forward is still gathered, but FSDP2 gathers it again, and this counts that call, too.
  pass(units.toReversed(), 1, (unit) => call(unit.elements * gradientWireBytes, nowSeconds))
  const computeSeconds = (1 + FORWARD_SHARE) * units.reduce((sum, unit) => sum + unit.backwardSeconds, 0)
  const stepSeconds = Math.max(nowSeconds, channel.freeSeconds)
  const sizes = units.map(({ elements }) => elements).sort((a, b) => b - a)
  const held = sizes.slice(0, 1 + prefetch).reduce((sum, elements) => sum + elements, 0)
  return {
    units: units.length,
    prefetch,
    stepMs: 1000 * stepSeconds,
    exposedMs: 1000 * (stepSeconds - computeSeconds),
    gatheredBytes: held * parameterBytes,
  }
}

/** An all-gather or a reduce-scatter among `ranks`: half of an all-reduce. */
function halfRingCost(link: Link, ranks: number): CallCost {
  return {
    callSeconds: (ranks - 1) * link.alphaSeconds,
    secondsPerByte: (ranks - 1) / (ranks * link.bandwidthBytesPerSecond),
  }
}
