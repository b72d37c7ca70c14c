import type { Copy } from '../model/copy.js'
import type { CachePolicy, DiskUsage } from '../model/policy.js'
import { findShare, type Held, ShareLedger } from './shares.js'

/** One copy that an eviction will delete, and why this one. */
export interface Victim {
  readonly copy: Copy
  readonly reason: string
}

/** Who asks for room, and on what node. */
interface Asked {
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** Whom the request is for; undefined = nobody (cleanup). */
  readonly parties: readonly string[] | undefined
  readonly isPrefetch?: boolean | undefined
}

/**
 * Offers copies for deletion, in the order in which shares give; yields those that `take` accepts.
 *
 * | a copy of …                                         | is offered to                                 |
 * |-----------------------------------------------------|-----------------------------------------------|
 * | a borrower: who takes more than it is guaranteed    | everybody, first                              |
 * | the share that asks                                 | that share, then; but not to a prefetch       |
 * | another share, within its guarantee                 | nobody but a cleanup, which asks for nobody   |
 *
 * Within a row, `candidates` keep their order. Whoever has no share borrows all that it has. A share ceases to be a
 * borrower as its copies go. So room that a share is guaranteed can be had whenever its borrowers are idle:
 * once none of them is left, the others take at most what is guaranteed to them.
 */
export function* takeByShare(
  asked: Asked,
  held: Held,
  offer: { readonly candidates: readonly Victim[]; readonly take: (copy: Copy) => boolean },
): Generator<Victim> {
  const { policy, disk, parties, isPrefetch = false } = asked
  if (policy.shares === undefined) {
    for (const victim of offer.candidates) if (offer.take(victim.copy)) yield victim
    return
  }
  const ledger = new ShareLedger(policy, disk, held)
  const kept: Victim[] = []
  for (const { copy, reason } of offer.candidates) {
    const party = ledger.shareOf(copy)
    if (ledger.isBorrower(party) && offer.take(copy)) {
      ledger.remove(copy)
      yield { copy, reason: `${reason}, borrowed by ${party ?? 'who has no share'}` }
    } else kept.push({ copy, reason })
  }
  if (isPrefetch) return
  const own = findShare(policy.shares, parties)
  for (const { copy, reason } of kept) {
    const party = ledger.shareOf(copy)
    if (parties !== undefined && (party === null || party !== own)) continue
    if (offer.take(copy)) yield { copy, reason: party === null ? reason : `${reason} within ${party}` }
  }
}
