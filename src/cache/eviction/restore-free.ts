import { type EvictionPlan, planEviction } from '../../policy/plan-eviction.js'
import type { Cache } from '../cache.js'
import { giveKeptRoom, measureRoom } from '../kept-copies.js'
import { finishOwnEviction } from './evict-copies.js'

/** The task of these evictions in the history. */
const TASK = 'dsc agent'

/**
 * Evicts idle copies, the least recently used first, while the disk has less than `minFree`: what others write comes
 * without an admission. Copies in use stay, even if that is not enough. Returns what it evicted.
 */
export async function restoreFree(cache: Cache): Promise<EvictionPlan['victims']> {
  const { minFreeBytes } = cache.policy
  if (minFreeBytes === undefined || (await cache.measureDisk()).freeBytes >= minFreeBytes) return []
  await giveKeptRoom(cache)
  const disk = await measureRoom(cache)
  const plan = await cache.record.beginEviction(
    { node: cache.node, task: TASK },
    (copies, unread) => {
      const request = { datasets: 0, bytes: 0, inodes: 0 }
      const plan = planEviction({ policy: { minFreeBytes }, disk, copies, unread, request, accept: 'part' })
      const victims = plan.victims.map(({ copy, reason }) => ({
        copy,
        reason: `others filled the disk beyond minFree: ${reason}`,
      }))
      return { ...plan, victims }
    },
    cache.nowMs(),
  )
  await finishOwnEviction(cache, plan, { by: undefined })
  return plan.victims
}
