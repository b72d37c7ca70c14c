import { LOOK_MS, pause } from '../../platform/poll.js'
import type { Cache } from '../cache.js'
import { type CountedSince, findActiveStagers, lookForOthers, planNodeShare } from './plan-node-share.js'

/** Maximum wait for others, in ms, so that a stopped or slow stager does not hold them up longer. */
const MAX_WAIT_MS = 5000

/** One staging's current share of its node's budget. */
export interface NodeShare {
  /** Requests in flight; absent = no limit. */
  readonly requestLimit?: (() => number) | undefined
  /** Bytes per second; absent = no limit. */
  readonly bandwidthLimit?: (() => number) | undefined
  /** Recounts the node's stagings. */
  readonly renew: () => Promise<void>
  /** Resolves when earlier stagings have shrunk to their share, after at most 5 s. */
  readonly waitForOthers: (signal: AbortSignal) => Promise<void>
}

/** Shares the node's budget with the other stagings in the record, in all processes. */
export function openNodeShare(cache: Cache, stageLeaseId: string): NodeShare {
  const { maxRequests, bandwidthBytesPerSecond } = cache.nodeBudget ?? {}
  if (maxRequests === undefined && bandwidthBytesPerSecond === undefined)
    return { renew: async () => {}, waitForOthers: async () => {} }
  let stagings = 1
  const look = async () => {
    const leases = await cache.record.listLeases({ node: cache.node, purpose: 'stage' })
    const active = findActiveStagers(leases, cache.nowMs())
    stagings = active.length
    return active
  }
  return {
    requestLimit: maxRequests === undefined ? undefined : () => planNodeShare(maxRequests, stagings),
    bandwidthLimit:
      bandwidthBytesPerSecond === undefined
        ? undefined
        : () => planNodeShare(bandwidthBytesPerSecond, stagings),
    renew: async () => {
      await look()
    },
    async waitForOthers(signal) {
      const sinceMs = cache.nowMs()
      const endMs = performance.now() + MAX_WAIT_MS
      let noted: CountedSince = new Map()
      while (!signal.aborted && performance.now() < endMs) {
        const active = await look()
        const own = active.find(({ leaseId }) => leaseId === stageLeaseId)
        if (own === undefined) return
        const others = lookForOthers({ own, sinceMs, active, noted })
        if (others.haveMadeRoom) return
        noted = others.noted
        await pause(LOOK_MS.release, signal)
      }
    },
  }
}
