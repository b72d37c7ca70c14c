import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { DrawContext, ListRows } from './lists/list-rows.js'
import type { ScreenSize } from './screen-plan.js'
import type { ScreenState } from './screen-state.js'

/** A record that cannot be read at present. */
export interface ReadProblem {
  readonly message: string
  /** Since when, Unix epoch in ms. */
  readonly sinceMs: number
}

/** A report as lines of at most so many cells. */
export type ReportText = (columns: number) => readonly string[]

/** Everything that a screen is made of. */
export interface ScreenInput {
  readonly snapshot: StatusSnapshot | undefined
  readonly problem: ReadProblem | undefined
  readonly state: ScreenState
  /** The list of the tab, made by `selectRows`. */
  readonly rows: ListRows
  /** Events of the copy that shows in the details; undefined while they are read. */
  readonly copyHistory: readonly RecordEvent[] | undefined
  /** What `dsc report` prints, where the screen asks for it; undefined while it is read. */
  readonly report?: ReportText | undefined
  readonly size: ScreenSize
  readonly context: DrawContext
}
