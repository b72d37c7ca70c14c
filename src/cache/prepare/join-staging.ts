import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { holdByThisProcess } from '../../platform/processes.js'
import type { Joined } from '../../records/contract/record-requests.js'
import type { Cache } from '../cache.js'
import { stagingDirectoryOf } from '../cache-layout.js'
import { STAGE_LEASE_MS } from '../leases/keep-stage-lease.js'
import {
  isAsPublished,
  isOfDefinition,
  type JoinedRequest,
  takeReadyCopy,
} from '../leases/take-ready-copy.js'
import { adoptUnknownCopies } from '../upkeep/adopt-unknown.js'
import { type HealProgress, healCopy } from '../upkeep/heal-copy.js'

/** The turn of the task that stages: the copy, the task's own lease on it, and the lease of its one stager. */
export type StageTurn = Extract<Joined, { outcome: 'stage' }>

/** `again`: the copy that was found is not usable; look once more. */
export async function joinStaging(
  cache: Cache,
  request: JoinedRequest,
  options: {
    readonly isRefresh: boolean
    readonly signal: AbortSignal
    readonly onProgress?: (progress: HealProgress) => void
  },
): Promise<Joined | { readonly outcome: 'again' }> {
  const { dataset, lease, stripe, version } = request
  const wanted = { stripe, version }
  const { isRefresh } = options
  const found = isRefresh ? undefined : await takeReadyCopy(cache, { dataset, lease, ...wanted })
  if (found?.outcome === 'ready') return found
  if (found?.outcome === 'touched') {
    const { copy, leaseId } = found
    return (await healCopy(cache, copy, options)) ? { outcome: 'ready', copy, leaseId } : { outcome: 'again' }
  }
  if (isRefresh) await healReady(cache, dataset, options)
  if (await adoptUnknownCopies(cache, dataset.name)) return { outcome: 'again' }
  const nowMs = cache.nowMs()
  return cache.record.joinOrReserve(
    {
      dataset: dataset.name,
      node: cache.node,
      lease,
      stager: { task: lease.task, holder: holdByThisProcess(), expiresAtMs: nowMs + STAGE_LEASE_MS },
      source: dataset,
      origin: parseSourceUrl(dataset.source).scheme,
      directoryOf: (copyId) => stagingDirectoryOf(cache.root, copyId),
      isRefresh,
      ...wanted,
      accept: (copy) => isOfDefinition(copy, dataset),
    },
    nowMs,
  )
}

/** A refresh that finds nothing new hands out the ready copy, so heal it first. */
async function healReady(
  cache: Cache,
  { name }: Dataset,
  options: Parameters<typeof healCopy>[2],
): Promise<void> {
  const wanted = { dataset: name, node: cache.node, states: ['ready'] as const }
  for (const copy of await cache.record.listCopies(wanted, cache.nowMs()))
    if (!isAsPublished(copy)) await healCopy(cache, copy, options)
}
