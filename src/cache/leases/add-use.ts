import { redactUrl } from '../../failure/redact.js'
import type { Copy } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import { describeUseWait, type UseWait } from '../../model/use-wait.js'
import type { Cache } from '../cache.js'

/**
 * Adds a use to the history. Agents make their metrics from it, `dsc report` its sums, and `dsc receipt` the list of
 * what a job used, even long after the copy is gone.
 */
export async function addUse(
  cache: Pick<Cache, 'record' | 'nowMs'>,
  use: { readonly copy: Copy; readonly lease: LeaseRequest; readonly wait: UseWait },
): Promise<void> {
  const { copy, lease, wait } = use
  const { copyId, dataset, node, version, files, contentBytes, path, source, stripe } = copy
  const { task, parties } = lease
  const detail = {
    ...describeUseWait(wait),
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
    reason: explain(wait),
    detail,
  })
}

function explain({ readyMs, readMs = readyMs }: UseWait): string {
  if (readyMs === 0) return 'it was ready'
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  return `${readMs < readyMs ? `read after ${seconds(readMs)}, ` : ''}ready after ${seconds(readyMs)}`
}
