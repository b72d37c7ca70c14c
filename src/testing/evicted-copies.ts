import type { TestContext } from 'node:test'
import type { Cache } from '../cache/cache.js'
import { evictCopies } from '../cache/eviction/evict-copies.js'
import { applyCleanUp, planCleanUpOf } from '../cache/upkeep/clean-up.js'
import { openExampleCache } from './example-cache.js'

/** A cache whose clock and disk a test sets, with a ready, idle copy of each dataset. */
export async function openCacheWith(t: TestContext, names: readonly string[], changes: Partial<Cache> = {}) {
  const world = { nowMs: Date.now(), capacityBytes: 1e12, freeBytes: 1e12 }
  const { cache, makeDataset, prepare } = await openExampleCache(t, {
    nowMs: () => world.nowMs,
    measureDisk: async () => ({
      capacityBytes: world.capacityBytes,
      freeBytes: world.freeBytes,
      inodesTotal: 1e9,
      inodesFree: 1e9,
    }),
    ...changes,
  })
  const stage = async (name: string) => {
    const prepared = await prepare(makeDataset(name))
    await cache.record.releaseUses({ leaseId: prepared.leaseId }, world.nowMs)
    return prepared.copy
  }
  for (const name of names) await stage(name)
  const states = async () =>
    (await cache.record.listCopies({}, world.nowMs)).map(({ dataset, state }) => `${dataset} ${state}`)
  const evict = (...evicted: readonly string[]) =>
    evictCopies(cache, { kind: 'datasets', names: evicted }, 'ada')
  return { world, cache, makeDataset, stage, states, evict }
}

/** Cleans up at once, in the name of a user if there is one. */
export const cleanUp = async (cache: Cache, by?: string) => {
  const signal = new AbortController().signal
  return applyCleanUp(cache, await planCleanUpOf(cache, { abandonedAfterMs: 0 }), { signal, by })
}
