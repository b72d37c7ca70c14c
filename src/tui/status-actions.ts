import type { PlacedLease } from '../model/lease.js'

/** The actions of the status screen. A rejection appears in its last line and changes nothing else. */
export interface StatusActions {
  lock(copyId: string, reason: string): Promise<void>
  unlock(copyId: string): Promise<void>
  evict(copyId: string): Promise<void>
  /** Ends one lease. */
  release(leaseId: string): Promise<void>
  /** Stops the staging of this lease; keeps the downloaded bytes. */
  cancel(stageLease: PlacedLease): Promise<void>
  /** Why `cancel` is not possible; undefined if it is. Checks this machine, briefly. */
  whyNotCancel(stageLease: PlacedLease | undefined): string | undefined
  /** Stages the dataset on this node; resolves when it is ready. The screen stays usable during the download. */
  prepare(dataset: string): Promise<void>
  /** Takes back the user's last eviction, unlock or release; resolves with a sentence about it. */
  undo(): Promise<string>
}
