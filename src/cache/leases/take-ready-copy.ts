import type { Copy, Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'
import { isGone } from '../../platform/is-gone.js'
import type { Cache } from '../cache.js'

/** `gone`: the record had one whose files are not there, and forgot it. `none`: nothing of use is ready here. */
type ReadyCopy =
  | { readonly outcome: 'ready'; readonly copy: Copy; readonly leaseId: string }
  | { readonly outcome: 'gone' | 'none' }

/**
 * Seed step 3: leases the newest ready copy of the dataset (for a stripe: or of that stripe) on this node, whatever
 * its source holds by now. This is all that a warm `dsc prepare` does, so this module loads nothing else.
 */
export async function takeReadyCopy(
  cache: Pick<Cache, 'record' | 'node' | 'nowMs'>,
  request: {
    readonly dataset: Dataset
    readonly lease: LeaseRequest
    readonly stripe?: Stripe
    readonly version?: string
  },
): Promise<ReadyCopy> {
  const { dataset } = request
  const accept = (copy: Copy) => isOfDefinition(copy, dataset)
  const wanted = { ...request, dataset: dataset.name, node: cache.node, accept }
  const use = await cache.record.leaseReady(wanted, cache.nowMs())
  if (use === undefined) return { outcome: 'none' }
  if (!isGone(use.copy.path)) return { outcome: 'ready', ...use }
  const reason = `${use.copy.path} is gone from disk`
  await cache.record.forgetCopies([use.copy.copyId], reason, cache.nowMs())
  return { outcome: 'gone' }
}

/** Whether the copy is what the definition asks for today; how its bytes are reached does not matter. */
export function isOfDefinition(copy: Copy, dataset: Dataset): boolean {
  if (copy.source === null) return true
  const content = ({ source, include, exclude }: Dataset) => JSON.stringify([source, include, exclude])
  return content(copy.source) === content(dataset)
}
