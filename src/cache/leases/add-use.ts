import { redactUrl } from '../../failure/redact.js'
import type { Copy } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import type { Cache } from '../cache.js'

/**
 * Adds a line about a use to the history, of which agents make their metrics, `dsc report` its sums, and `dsc receipt`
 * what a job used: also when the copy is long gone. `waitedMs`: 0 for a copy that was ready.
 */
export async function addUse(
  cache: Pick<Cache, 'record' | 'nowMs'>,
  use: { readonly copy: Copy; readonly lease: LeaseRequest; readonly waitedMs: number },
): Promise<void> {
  const { copy, lease, waitedMs } = use
  const { copyId, dataset, node, version, files, contentBytes, path, source, stripe } = copy
  const { task, parties } = lease
  const reason = waitedMs === 0 ? 'it was ready' : `ready after ${(waitedMs / 1000).toFixed(1)} s`
  const detail = {
    isHit: waitedMs === 0,
    waitedMs,
    version,
    files,
    contentBytes,
    path,
    source: source && { ...source, source: redactUrl(source.source) },
    ...(stripe && { stripe }),
    ...(parties && { parties }),
  }
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
