import type { QueueTime } from './queue-times.js'

/** How long the last rank of a node waited in some steps, and went on from there, in ms. */
export interface Stretch {
  readonly waitedMs: number
  readonly restMs: number
}

/** A node that waited for another in the queue. */
export interface QueueHoldUp {
  /** The place of the node that was in the queue last. */
  readonly last: number
  readonly heldMs: number
  /** The part before its trainers began to count. */
  readonly heldBeforeMs: number
}

/** The first blocks in which nodes may meet: what comes before the first step, and that step, in which they exchange. */
const FIRST_BLOCKS = 2

/**
 * Computes for how long each node waited because another was in the queue for longer: as long as it lay idle, and no
 * longer than the other's queue kept it. Nodes that train apart do not meet. Returns the blocks without these waits, too.
 */
export function findQueueHoldUps(
  queues: readonly QueueTime[],
  blocks: readonly (readonly Stretch[])[],
): { readonly holdUps: readonly QueueHoldUp[]; readonly rest: readonly (readonly Stretch[])[] } {
  const before = compareQueues(queues)
  const longestMs = Math.max(...before.map(({ waitedMs }) => waitedMs))
  const last = before.findIndex(({ waitedMs }) => waitedMs === longestMs)
  const first = blocks.slice(0, FIRST_BLOCKS)
  const endMs = before.map(({ tookMs }, node) =>
    first.reduce((sum, block) => sum + block[node]!.waitedMs + block[node]!.restMs, tookMs),
  )
  const shortestMs = first.map((block) => Math.min(...block.map(({ restMs }) => restMs)))
  const found = before.map(({ waitedMs, heldMs }, node) => {
    const aheadMs = longestMs - waitedMs
    let leftMs = haveMet(aheadMs, endMs[last]! - endMs[node]!) ? aheadMs : 0
    const take = (idleMs: number) => {
      const ms = Math.min(leftMs, idleMs)
      leftMs -= ms
      return ms
    }
    const heldBeforeMs = take(heldMs)
    return { heldBeforeMs, heldMs: first.map((block, at) => take(block[node]!.restMs - shortestMs[at]!)) }
  })
  return {
    holdUps: found.map(({ heldBeforeMs, heldMs }) => ({
      ...{ last, heldBeforeMs },
      heldMs: heldMs.reduce((sum, ms) => sum + ms, heldBeforeMs),
    })),
    rest: blocks.map((block, at) =>
      block.map((own, node) => ({ ...own, restMs: own.restMs - (found[node]!.heldMs[at] ?? 0) })),
    ),
  }
}

/** Whether a node that was ahead of another has lost most of that, and so has waited for it. */
function haveMet(aheadMs: number, stillAheadMs: number): boolean {
  return stillAheadMs < aheadMs / 2
}

/**
 * Compares the queues of nodes. `waitedMs`: for how long a node was in the queue when all could have begun; `heldMs`: for
 * how long it waited before its feed for the queue of another; `tookMs`: from when all could have begun until its trainers
 * did, negative if they did before.
 */
function compareQueues(queues: readonly QueueTime[]) {
  const fromMs = Math.max(
    Math.min(...queues.map(({ endedAtMs }) => endedAtMs)),
    ...queues.map(({ endedAtMs, totalMs }) => endedAtMs - totalMs),
  )
  const readyAtMs = queues.map(({ endedAtMs }) => Math.max(endedAtMs, fromMs))
  const lastReadyAtMs = Math.max(...readyAtMs)
  const lastFedAtMs = queues[readyAtMs.indexOf(lastReadyAtMs)]!.fedSinceMs
  const own = queues.map(({ fedSinceMs, totalMs }, at) => {
    const aheadMs = lastReadyAtMs - readyAtMs[at]!
    const heldMs = haveMet(aheadMs, lastFedAtMs - fedSinceMs) ? aheadMs : 0
    return { heldMs, fedSinceMs, couldBeginAtMs: fedSinceMs - heldMs - totalMs }
  })
  const beginAtMs = Math.max(...own.map(({ couldBeginAtMs }) => couldBeginAtMs))
  return own.map(({ heldMs, fedSinceMs }) => {
    const tookMs = fedSinceMs - beginAtMs
    return { heldMs, tookMs, waitedMs: Math.max(0, tookMs - heldMs) }
  })
}
