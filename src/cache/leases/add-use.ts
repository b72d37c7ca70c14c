import { redactUrl } from '../../failure/redact.js'
import type { Copy } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import type { Cache } from '../cache.js'

/**
 * Adds a use to the history. Agents make their metrics from it, `dsc report` its sums, and `dsc receipt` the list of
 * what a job used, even long after the copy is gone. `waitedMs`: 0 for a copy that was ready.
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
    stripe,
    parties,
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
