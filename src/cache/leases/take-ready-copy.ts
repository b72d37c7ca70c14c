import type { Copy, Stripe } from '../../model/copy.js'
import { type Dataset, isSameDefinition } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'
import { isEmpty, isGone } from '../../platform/is-gone.js'
import type { Cache } from '../cache.js'
import { isUntouched } from '../untouched-copy.js'

/** `touched`: something was removed from its files or added to them. `none`: no usable copy is ready here. */
type ReadyCopy =
  | { readonly outcome: 'ready'; readonly copy: Copy; readonly leaseId: string }
  | { readonly outcome: 'touched'; readonly copy: Copy; readonly leaseId: string }
  | { readonly outcome: 'none' }

/** A task's request for a dataset on this node. */
export interface JoinedRequest {
  readonly dataset: Dataset
  readonly lease: LeaseRequest
  /** The stripe to prepare; absent = the whole dataset. */
  readonly stripe?: Stripe | undefined
  /** The version to prepare; absent = any ready one, else the source's current one. */
  readonly version?: string | undefined
}

/**
 * Seed step 3: leases the newest ready copy of the dataset (for a stripe: or of that stripe) on this node, even if its
 * source has changed. A warm `dsc prepare` does nothing else, so this module loads nothing else.
 */
export async function takeReadyCopy(
  cache: Pick<Cache, 'record' | 'node' | 'nowMs'>,
  request: JoinedRequest,
): Promise<ReadyCopy> {
  const { dataset } = request
  const accept = (copy: Copy) => isOfDefinition(copy, dataset)
  const wanted = { ...request, dataset: dataset.name, node: cache.node, accept }
  const use = await cache.record.leaseReady(wanted, cache.nowMs())
  if (use === undefined) return { outcome: 'none' }
  return { outcome: isAsPublished(use.copy) ? 'ready' : 'touched', ...use }
}

/** Whether the copy is still as published, as far as a few stats tell. */
export function isAsPublished({ origin, directory, path }: Copy): boolean {
  // The owner of an adopted folder may change it.
  return origin === 'local' ? !isGone(path) && !isEmpty(path) : isUntouched(directory)
}

/** Whether the copy has the content that the definition names today; how its bytes are reached does not matter. */
export function isOfDefinition(copy: Copy, dataset: Dataset): boolean {
  return copy.source === null || isSameDefinition(copy.source, dataset)
}
