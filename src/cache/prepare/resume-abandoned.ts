import { findOwner } from '../../model/dataset.js'
import { holdByThisProcess } from '../../platform/processes.js'
import type { Cache } from '../cache.js'
import { prepareDataset } from './prepare-dataset.js'

/** Finishes every abandoned staging of this node. Returns the datasets that are now ready. */
export async function resumeAbandoned(cache: Cache, signal: AbortSignal): Promise<readonly string[]> {
  const copies = await cache.record.listCopies({ node: cache.node, states: ['staging'] }, cache.nowMs())
  const finished: string[] = []
  for (const { dataset, source, stripe, isBeingStaged } of copies) {
    // Only its user has the credentials for a dataset of their own.
    if (isBeingStaged || source === null || findOwner(dataset) !== undefined) continue
    const lease = { task: 'dsc cleanup', holder: holdByThisProcess(), expiresAtMs: null }
    const prepared = await prepareDataset(
      cache,
      { dataset: source, lease, isRefresh: true, mayWait: false, stripe },
      { signal },
    )
    await cache.record.releaseUses({ leaseId: prepared.leaseId }, cache.nowMs())
    finished.push(dataset)
  }
  return finished
}
