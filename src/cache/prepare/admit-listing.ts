import type { Copy } from '../../model/copy.js'
import type { Lease } from '../../model/lease.js'
import { type Admission, planAdmission } from '../../policy/plan-admission.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { Cache } from '../cache.js'
import { explainRefusal } from '../eviction/explain-refusal.js'
import { finishEvictions } from '../eviction/finish-evictions.js'
import { expireDeadLeases } from '../leases/expire-leases.js'
import type { Listing } from '../manifest/listing.js'

/** Rounds of evict-and-look-again. Each frees something or ends, so more are never needed in practice. */
const MAX_ROUNDS = 1000

type Admitted =
  | { readonly outcome: 'admitted'; readonly victims: readonly Victim[] }
  | { readonly outcome: 'same-version'; readonly copy: Copy }
  | { readonly outcome: 'lost' }

/**
 * Makes room for a listed source and reserves it: the victims' bytes are off the disk before this resolves.
 * Rejects with QUOTA_EXCEEDED, having deleted nothing for this request, when no permitted eviction is enough.
 */
export async function admitListing(
  cache: Cache,
  staged: { readonly copy: Copy; readonly stageLeaseId: string },
  { listing, isPrefetch }: { readonly listing: Listing; readonly isPrefetch?: boolean | undefined },
): Promise<Admitted> {
  const { copyId, dataset } = staged.copy
  const request = { datasets: 1, bytes: listing.neededBytes, inodes: listing.neededInodes }
  let hasAskedSlurm = false
  await expireDeadLeases(cache, { asksSlurm: false })
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const disk = await cache.measureDisk()
    const admission = await cache.record.admit(
      {
        copyId,
        stageLeaseId: staged.stageLeaseId,
        version: listing.version,
        files: listing.files,
        contentBytes: listing.contentBytes,
        chargedBytes: listing.neededBytes,
        chargedInodes: listing.neededInodes,
      },
      (copies) =>
        planAdmission({ policy: cache.policy, disk, copies, request, requestCopyId: copyId, isPrefetch }),
      cache.nowMs(),
    )
    switch (admission.outcome) {
      case 'lost':
      case 'same-version':
        return admission
      case 'wait':
        await finishEvictions(cache, admission.evicting)
        break
      case 'admit': {
        const { victims } = admission.plan
        await finishEvictions(
          cache,
          victims.map(({ copy }) => copy),
        )
        return { outcome: 'admitted', victims }
      }
      case 'refuse': {
        // Asking Slurm is slow, so it is asked only when its answer could turn the refusal.
        if (!hasAskedSlurm && (await expireDeadLeases(cache, { asksSlurm: true })).length > 0) {
          hasAskedSlurm = true
          break
        }
        throw await refuse(cache, admission, { dataset, request, disk })
      }
    }
  }
  throw new Error(`admission of ${dataset} did not settle in ${MAX_ROUNDS} rounds`)
}

async function refuse(
  cache: Cache,
  { plan, holders, shares }: Extract<Admission, { outcome: 'refuse' }>,
  asked: Pick<Parameters<typeof explainRefusal>[0], 'dataset' | 'request' | 'disk'>,
) {
  const leases: readonly Lease[] = await cache.record.listLeases({ node: cache.node })
  const { node, policy } = cache
  return explainRefusal({ ...asked, node, policy, plan, holders, shares, leases, nowMs: cache.nowMs() })
}
