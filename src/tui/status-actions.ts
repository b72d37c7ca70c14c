import type { PlacedLease } from '../model/lease.js'
import type { Action } from './view/screen-state.js'

/** The actions of the status screen. A rejection appears in its last line and changes nothing else. */
export interface StatusActions {
  /**
   * Carries out the request of a key; resolves when it is done, with a sentence about it if the usual one does not fit.
   * The screen stays usable until then. `stageLease` holds the copy while it is staged.
   */
  perform(action: Action, stageLease: PlacedLease | undefined): Promise<string | undefined>
  /** Why the staging of this lease cannot be stopped; undefined if it can. Checks this machine, briefly. */
  whyNotCancel(stageLease: PlacedLease | undefined): string | undefined
}
