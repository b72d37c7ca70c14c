import type { StepBlocks } from '../../model/step-blocks.js'
import type { WaitPlace } from './job-times.js'
import { findQueueHoldUps, type QueueHoldUp, type Stretch } from './queue-hold-ups.js'
import type { QueueTime } from './queue-times.js'

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
  /** Causes of the waits in them. */
  readonly causes: readonly Cause[]
}

/** GPU-milliseconds that a node waited for ranks of another. */
interface NodeHoldUp extends Omit<Cause, 'ms'> {
  readonly gpuMs: number
}

/** Sums of a node over blocks, ms. */
interface Held {
  earlyMs: number
  heldMs: number
  tookMs: number
  /** By the place of the node that had its batches last. */
  readonly behind: number[]
}

/**
 * Computes how long the nodes of a job waited for each other, as `HoldUps` does for the ranks of one feed, and from blocks
 * of steps: in each block, the node whose ranks waited longest for batches held up the others, for no longer than they
 * took above the quickest node. Blocks that not all nodes have told alike do not count. `queues`: of the same nodes, if
 * these are their first steps.
 */
export function findNodeHoldUps(
  nodes: readonly NodeSteps[],
  queues: readonly QueueTime[] = [],
): { readonly inQueue: readonly QueueHoldUp[]; readonly inSteps: readonly NodeHoldUp[] } {
  if (nodes.length < 2) return { inQueue: [], inSteps: [] }
  const { isFromStart, blocks } = alignBlocks(nodes)
  if (queues.length === 0 || !isFromStart) return { inQueue: [], inSteps: findStepHoldUps(nodes, blocks) }
  const { holdUps, rest } = findQueueHoldUps(queues, blocks)
  return { inQueue: holdUps, inSteps: findStepHoldUps(nodes, rest) }
}

function findStepHoldUps(
  nodes: readonly NodeSteps[],
  blocks: readonly (readonly Stretch[])[],
): readonly NodeHoldUp[] {
  const all = nodes.map((): Held => ({ earlyMs: 0, heldMs: 0, tookMs: 0, behind: nodes.map(() => 0) }))
  for (const block of blocks) {
    const longest = Math.max(...block.map(({ waitedMs }) => waitedMs))
    const last = block.findIndex(({ waitedMs }) => waitedMs === longest)
    const shortest = Math.min(...block.map(({ restMs }) => restMs))
    for (const [node, { waitedMs, restMs }] of block.entries()) {
      const held = all[node]!
      held.behind[last]! += longest - waitedMs
      held.earlyMs += longest - waitedMs
      const ms = Math.min(held.earlyMs, restMs - shortest)
      held.earlyMs -= ms
      held.heldMs += ms
      held.tookMs += waitedMs + restMs
    }
  }
  const longestMs = Math.max(...all.map(({ tookMs }) => tookMs))
  return all.flatMap((held, node) => attribute(nodes, held, { gpus: nodes[node]!.gpus, longestMs }))
}

/** The blocks that all nodes have told alike, in order: a stretch of each node. */
function alignBlocks(nodes: readonly NodeSteps[]) {
  const size = Math.max(...nodes.flatMap(({ steps }) => steps.map((each) => each.size)))
  const merged = nodes.map(({ steps }) => mergeBlocks(steps, size))
  const aligned = [...merged[0]!]
    .sort(([a], [b]) => a - b)
    .map(([at, { steps }]) => ({ at, steps, block: merged.flatMap((of) => of.get(at) ?? []) }))
    .filter(
      ({ steps, block }) => block.length === nodes.length && block.every((each) => each.steps === steps),
    )
  return { isFromStart: aligned[0]?.at === 0, blocks: aligned.map(({ block }) => block) }
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

/** Divides the time that a node was held up among the nodes that were behind it, and the causes of their waits. */
function attribute(
  nodes: readonly NodeSteps[],
  { heldMs, tookMs, behind }: Held,
  { gpus, longestMs }: { readonly gpus: number; readonly longestMs: number },
): readonly NodeHoldUp[] {
  const behindMs = behind.reduce((sum, ms) => sum + ms, 0)
  const ms = Math.min(heldMs, behindMs - (longestMs - tookMs))
  if (ms <= 0) return []
  return behind.flatMap((own, other) => {
    const { causes } = nodes[other]!
    const waitedMs = causes.reduce((sum, each) => sum + each.ms, 0)
    return causes.map(({ place, culprit, ms: each }) => ({
      place,
      culprit,
      gpuMs: (gpus * ms * own * each) / (behindMs * (waitedMs || 1)),
    }))
  })
}
