import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import type { DayHistory } from '../../cache/status/trace-day.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { DrawContext, ListRows } from './lists/list-rows.js'
import type { ScreenSize } from './screen-plan.js'
import type { ScreenState } from './screen-state.js'

/** A problem that keeps the record from being read. */
export interface ReadProblem {
  readonly message: string
  /** When the problem began, Unix epoch in ms. */
  readonly sinceMs: number
}

/** A report as lines of at most `columns` cells. */
export type ReportText = (columns: number) => readonly string[]

/** All inputs of a screen. */
export interface ScreenInput {
  readonly snapshot: StatusSnapshot | undefined
  readonly problem: ReadProblem | undefined
  readonly state: ScreenState
  /** The list of the tab, from `selectRows`. */
  readonly rows: ListRows
  /** Events of the copy in the details; undefined while they are being read. */
  readonly copyHistory: readonly RecordEvent[] | undefined
  /** The last 24 hours; undefined while they are being read. */
  readonly day?: DayHistory | undefined
  /** The output of `dsc report`, if the screen needs it; undefined while it is being read. */
  readonly report?: ReportText | undefined
  readonly size: ScreenSize
  readonly context: DrawContext
}
