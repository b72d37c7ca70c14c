import type { StepBlocks } from '../../model/step-blocks.js'
import type { WaitPlace } from './job-times.js'
import type { QueueLead } from './queue-times.js'

/** A cause for which the ranks of a node waited, in ms. */
export interface Cause {
  readonly place: WaitPlace
  /** As in `JobWait`. */
  readonly culprit: string
  readonly ms: number
}

/** Steps of a job on one node, as its feeds noted them. */
export interface NodeSteps {
  readonly gpus: number
  readonly steps: readonly StepBlocks[]
  /** Known of all nodes or none. */
  readonly before?: QueueLead | undefined
  readonly causes: readonly Cause[]
}

/** How long the last rank of a node waited in some steps, and went on from there, in ms. */
interface Stretch {
  readonly waitedMs: number
  readonly restMs: number
}

/** GPU-milliseconds that a node waited for ranks of another. */
interface NodeHoldUp extends Omit<Cause, 'ms'> {
  readonly gpuMs: number
}

/** Sums of a node over blocks, ms. */
interface Held {
  earlyMs: number
  heldMs: number
  /** The part of `heldMs` before its trainers began to count. */
  heldBeforeMs: number
  tookMs: number
  /** By the place of the node that had its batches last. */
  readonly behind: number[]
}

/**
 * Computes how long the nodes of a job waited for each other, as `HoldUps` does for the ranks of one feed, and from blocks
 * of steps: in each block, the node whose ranks waited longest for batches held up the others, for no longer than they
 * took above the quickest node. Blocks that not all nodes have told alike do not count. `uncountedGpuMs`: the part in
 * which no trainer counted its time.
 */
export function findNodeHoldUps(nodes: readonly NodeSteps[]): {
  readonly holdUps: readonly NodeHoldUp[]
  readonly uncountedGpuMs: number
} {
  if (nodes.length < 2) return { holdUps: [], uncountedGpuMs: 0 }
  const all = nodes.map((): Held => {
    return { earlyMs: 0, heldMs: 0, heldBeforeMs: 0, tookMs: 0, behind: nodes.map(() => 0) }
  })
  const { isFromStart, blocks } = alignBlocks(nodes)
  const before = isFromStart ? nodes.flatMap((node) => node.before ?? []) : []
  if (before.length === nodes.length) addQueues(all, before)
  for (const block of blocks) addStretches(all, block)
  const longestMs = Math.max(...all.map(({ tookMs }) => tookMs))
  const sums = all.map((held) => {
    const behindMs = held.behind.reduce((sum, ms) => sum + ms, 0)
    return { ...held, behindMs, ms: Math.min(held.heldMs, behindMs - (longestMs - held.tookMs)) }
  })
  return {
    holdUps: sums.flatMap((held, node) => (held.ms > 0 ? attribute(nodes, held, nodes[node]!.gpus) : [])),
    uncountedGpuMs: sums.reduce(
      (sum, { ms, heldBeforeMs }, node) => sum + nodes[node]!.gpus * Math.max(0, Math.min(ms, heldBeforeMs)),
      0,
    ),
  }
}

/** The blocks that all nodes have told alike, in order, with a stretch of each node. */
function alignBlocks(nodes: readonly NodeSteps[]) {
  const size = Math.max(...nodes.flatMap(({ steps }) => steps.map((each) => each.size)))
  const merged = nodes.map(({ steps }) => mergeBlocks(steps, size))
  const aligned = [...merged[0]!]
    .sort(([a], [b]) => a - b)
    .map(([at, { steps }]) => ({ at, steps, stretches: merged.flatMap((of) => of.get(at) ?? []) }))
    .filter(
      ({ steps, stretches }) =>
        stretches.length === nodes.length && stretches.every((each) => each.steps === steps),
    )
  return { isFromStart: aligned[0]?.at === 0, blocks: aligned.map(({ stretches }) => stretches) }
}

function mergeBlocks(steps: readonly StepBlocks[], size: number) {
  const merged = new Map<number, { steps: number; waitedMs: number; restMs: number }>()
  for (const told of steps)
    for (const [at, count, waitedMs, restMs] of told.blocks) {
      const place = Math.floor((at * told.size) / size)
      const sum = merged.get(place) ?? { steps: 0, waitedMs: 0, restMs: 0 }
      sum.steps += count
      sum.waitedMs += waitedMs
      sum.restMs += restMs
      merged.set(place, sum)
    }
  return merged
}

/** Adds what came before the first step. */
function addQueues(all: readonly Held[], queues: readonly QueueLead[]): void {
  const longest = Math.max(...queues.map(({ waitedMs }) => waitedMs))
  const last = queues.findIndex(({ waitedMs }) => waitedMs === longest)
  for (const [node, { waitedMs, heldMs, tookMs }] of queues.entries()) {
    const held = all[node]!
    const early = longest - waitedMs
    held.behind[last]! += early
    held.heldMs = held.heldBeforeMs = Math.min(early, heldMs)
    held.earlyMs = early - held.heldMs
    held.tookMs += tookMs
  }
}

/** Adds what the nodes did in the same steps. */
function addStretches(all: readonly Held[], stretches: readonly Stretch[]): void {
  const longest = Math.max(...stretches.map(({ waitedMs }) => waitedMs))
  const last = stretches.findIndex(({ waitedMs }) => waitedMs === longest)
  const shortest = Math.min(...stretches.map(({ restMs }) => restMs))
  for (const [node, { waitedMs, restMs }] of stretches.entries()) {
    const held = all[node]!
    held.behind[last]! += longest - waitedMs
    held.earlyMs += longest - waitedMs
    const ms = Math.min(held.earlyMs, restMs - shortest)
    held.earlyMs -= ms
    held.heldMs += ms
    held.tookMs += waitedMs + restMs
  }
}

/** Divides the time that a node was held up among the nodes that were behind it, and the causes of their waits. */
function attribute(
  nodes: readonly NodeSteps[],
  { ms, behind, behindMs }: Held & { readonly ms: number; readonly behindMs: number },
  gpus: number,
): readonly NodeHoldUp[] {
  return behind.flatMap((own, other) => {
    const { causes } = nodes[other]!
    const waitedMs = causes.reduce((sum, each) => sum + each.ms, 0)
    return causes.map(({ place, culprit, ms: each }) => ({
      place,
      culprit,
      gpuMs: (gpus * ms * own * each) / (behindMs * waitedMs),
    }))
  })
}
