import type { Copy } from '../model/copy.js'
import type { CachePolicy, DiskUsage } from '../model/policy.js'
import { findShare, type Held, ShareLedger } from './shares.js'

/** A copy that an eviction will delete, and the reason. */
export interface Victim {
  readonly copy: Copy
  readonly reason: string
}

/** The request for space, and its node. */
interface Asked {
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** The requesting parties; undefined = none (cleanup). */
  readonly parties: readonly string[] | undefined
  readonly isPrefetch?: boolean | undefined
}

/**
 * Offers copies for deletion, in the order in which shares give; yields those that `take` accepts.
 *
 * | a copy of …                                         | is offered to                                 |
 * |-----------------------------------------------------|-----------------------------------------------|
 * | a borrower, which takes more than its guarantee     | everybody, first                              |
 * | the requesting share                                | that share, next; but not to a prefetch       |
 * | another share, within its guarantee                 | only a cleanup, which has no parties          |
 *
 * Within a row, `candidates` keep their order. Parties without a share borrow everything they have. A share stops
 * being a borrower as its copies go. So guaranteed space is available whenever its borrowers are idle: once none of
 * them is left, the others take at most their guarantee.
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
