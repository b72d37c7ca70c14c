import type { StepBlocks } from '../../model/step-blocks.js'

/** Steps of a job on one node, as its feeds noted them. */
export interface NodeSteps {
  readonly gpus: number
  readonly steps: readonly StepBlocks[]
}

/** GPU-milliseconds that a node waited for ranks of another. */
interface NodeHoldUp {
  /** See `FedTime.waits`. */
  readonly culprit: string
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
 * took above the quickest node. Blocks that not all nodes have told alike do not count.
 */
export function findNodeHoldUps(nodes: readonly NodeSteps[]): readonly NodeHoldUp[] {
  if (nodes.length < 2) return []
  const size = Math.max(...nodes.flatMap(({ steps }) => steps.map((each) => each.size)))
  const merged = nodes.map(({ steps }) => mergeBlocks(steps, size))
  const all = nodes.map((): Held => ({ earlyMs: 0, heldMs: 0, tookMs: 0, behind: nodes.map(() => 0) }))
  for (const [at, { steps }] of [...merged[0]!].sort(([a], [b]) => a - b)) {
    const blocks = merged.flatMap((of) => of.get(at) ?? [])
    if (blocks.length < nodes.length || blocks.some((block) => block.steps !== steps)) continue
    const longest = Math.max(...blocks.map(({ waitedMs }) => waitedMs))
    const last = blocks.findIndex(({ waitedMs }) => waitedMs === longest)
    const shortest = Math.min(...blocks.map(({ restMs }) => restMs))
    for (const [node, { waitedMs, restMs }] of blocks.entries()) {
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
    const causes = nodes[other]!.steps.flatMap((told) => Object.entries(told.causes))
    const waitedMs = causes.reduce((sum, [, each]) => sum + each, 0)
    return causes.map(([culprit, each]) => ({
      culprit,
      gpuMs: (gpus * ms * own * each) / (behindMs * waitedMs),
    }))
  })
}
