import type { Copy } from '../../model/copy.js'
import type { Cache } from '../cache.js'

/** Adds a line about a use to the history. `waitedMs`: 0 for a copy that was ready. */
export async function addUse(
  cache: Pick<Cache, 'record' | 'nowMs'>,
  { copy, task, waitedMs }: { readonly copy: Copy; readonly task: string; readonly waitedMs: number },
): Promise<void> {
  const { copyId, dataset, node } = copy
  const reason = waitedMs === 0 ? 'it was ready' : `ready after ${(waitedMs / 1000).toFixed(1)} s`
  const detail = { isHit: waitedMs === 0, waitedMs }
  await cache.record.addEvent({
    atMs: cache.nowMs(),
    kind: 'leased',
    node,
    dataset,
    copyId,
    task,
    reason,
    detail,
  })
}
