import type { CopyUse } from '../../../model/copy.js'
import type { PlacedLease } from '../../../model/lease.js'
import type { ListRows } from '../lists/list-rows.js'
import type { Effect, ScreenState } from '../screen-state.js'

/** A key: a name, or the text that it types. */
export interface KeyPress {
  readonly name:
    | 'up'
    | 'down'
    | 'left'
    | 'right'
    | 'page-up'
    | 'page-down'
    | 'home'
    | 'end'
    | 'enter'
    | 'escape'
    | 'tab'
    | 'shift-tab'
    | 'backspace'
    | 'ctrl-c'
    | 'ctrl-u'
    | 'ctrl-z'
    | 'text'
  readonly text: string
}

/** What a key acts on. */
export interface KeyTarget {
  readonly rows: ListRows
  /** Rows of the list that show. */
  readonly height: number
  /** The copy under the cursor, or the one whose details show. */
  readonly copy: CopyUse | undefined
  /** The lease under the cursor. */
  readonly lease: PlacedLease | undefined
  /** Why the staging of a copy cannot be stopped from here; undefined where it can. */
  readonly whyNotCancel: (copyId: string) => string | undefined
  /** The node that this is: only its copies can be evicted here. */
  readonly ownNode: string
}

/** What a key does: the state after it, and what is to happen besides. */
export interface KeyOutcome {
  readonly state: ScreenState
  readonly effect?: Effect
}
