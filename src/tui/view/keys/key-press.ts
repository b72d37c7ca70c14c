import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
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

/** The items that a key acts on. */
export interface KeyTarget {
  /** For the names that commands take. */
  readonly snapshot: StatusSnapshot | undefined
  readonly rows: ListRows
  /** Number of visible rows of the list. */
  readonly height: number
  /** The copy under the cursor, or the one in the details. */
  readonly copy: CopyUse | undefined
  /** The lease under the cursor. */
  readonly lease: PlacedLease | undefined
  /** Why the staging of a copy cannot be stopped from here; undefined if it can. */
  readonly whyNotCancel: (copyId: string) => string | undefined
  /** The name of this node: only its copies can be evicted here. */
  readonly ownNode: string
}

/** The effects of a key: the new state, and any further action. */
export interface KeyOutcome {
  readonly state: ScreenState
  readonly effect?: Effect | undefined
}

/** The character that a key types, or the key's name. */
export function nameKey({ name, text }: KeyPress): string {
  return name === 'text' ? text : name
}

/** How many rows a key moves or scrolls, by pages of so many rows; undefined: it does something else. */
export function findStep(key: KeyPress, pageRows: number): number | undefined {
  const steps = new Map([
    ['up', -1],
    ['k', -1],
    ['down', 1],
    ['j', 1],
    ['page-up', -pageRows],
    ['page-down', pageRows],
    [' ', pageRows],
    ['home', Number.NEGATIVE_INFINITY],
  ])
  return steps.get(nameKey(key))
}
