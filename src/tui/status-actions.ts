/** What the status screen can do. A rejection is shown in its last line and changes nothing else. */
export interface StatusActions {
  lock(copyId: string, reason: string): Promise<void>
  unlock(copyId: string): Promise<void>
  evict(copyId: string): Promise<void>
  /** Stages the dataset on this node; resolves when it is ready. The screen stays usable meanwhile. */
  prepare(dataset: string): Promise<void>
}
