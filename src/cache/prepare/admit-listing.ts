import type { Listing } from '../../manifest/listing.js'
import type { Copy } from '../../model/copy.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { Cache } from '../cache.js'
import { settleAdmission } from '../eviction/settle-admission.js'

type Admitted =
  | { readonly outcome: 'admitted'; readonly victims: readonly Victim[] }
  | { readonly outcome: 'same-version'; readonly copy: Copy }
  | { readonly outcome: 'lost' }

/**
 * Makes room for a listed source and reserves it; the victims' bytes are off the disk when this resolves. Rejects with
 * QUOTA_EXCEEDED if no permitted eviction is enough; then it deleted nothing for this request.
 */
export async function admitListing(
  cache: Cache,
  staged: { readonly copy: Copy; readonly stageLeaseId: string },
  { listing, isPrefetch }: { readonly listing: Listing; readonly isPrefetch?: boolean | undefined },
): Promise<Admitted> {
  const { copyId, dataset } = staged.copy
  const request = { datasets: 1, bytes: listing.neededBytes, inodes: listing.neededInodes }
  const settled = await settleAdmission(cache, {
    dataset,
    request,
    requestCopyId: copyId,
    isPrefetch,
    ask: (decide) =>
      cache.record.admit(
        {
          copyId,
          stageLeaseId: staged.stageLeaseId,
          version: listing.version,
          files: listing.files,
          contentBytes: listing.contentBytes,
          chargedBytes: listing.neededBytes,
          chargedInodes: listing.neededInodes,
        },
        decide,
        cache.nowMs(),
      ),
  })
  return settled.outcome === 'admit' ? { outcome: 'admitted', victims: settled.plan.victims } : settled
}
