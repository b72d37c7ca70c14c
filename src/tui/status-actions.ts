import type { PlacedLease } from '../model/lease.js'

/** What the status screen can do. A rejection is shown in its last line and changes nothing else. */
export interface StatusActions {
  lock(copyId: string, reason: string): Promise<void>
  unlock(copyId: string): Promise<void>
  evict(copyId: string): Promise<void>
  /** Ends one lease. */
  release(leaseId: string): Promise<void>
  /** Stops the staging that this lease stands for; what was fetched is kept. */
  cancel(stageLease: PlacedLease): Promise<void>
  /** Why `cancel` could not do that; undefined where it could. Looks at this machine, briefly. */
  whyNotCancel(stageLease: PlacedLease | undefined): string | undefined
  /** Stages the dataset on this node; resolves when it is ready. The screen stays usable meanwhile. */
  prepare(dataset: string): Promise<void>
}
