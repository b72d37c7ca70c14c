import type { FailureAnswer } from '../../failure/failure-answer.js'
import type { Dataset } from '../../model/dataset.js'
import type { CachePolicy } from '../../model/policy.js'
import type { NodeOutcome } from '../calls/prepare-on-nodes.js'
import type { ErrorLine, LineProgress } from '../server/answer-in-lines.js'

/** Version of what is said at the door, in every path. A field that is added needs no new one. */
export const DOOR_VERSION = 2

/** Rows of one answer: a client that wants more asks for those after the last. */
export const PAGE_ROWS = 500

/** One line of an answer. The last is a result or an error. */
export type DoorLine =
  | { readonly progress: LineProgress }
  /** The keys that were handed over expire: the client hands over new ones by `giveAccess`, with this `call`. */
  | { readonly need: 'access'; readonly call: string }
  | { readonly result: unknown }
  | ErrorLine

/** The outcome on one node of the cluster. */
export type SentOutcome =
  | Extract<NodeOutcome, { readonly outcome: 'ready' }>
  | { readonly node: string; readonly outcome: 'failed'; readonly error: FailureAnswer }

/** A service's description of itself: the settings that commands would read from its configuration. */
export interface DoorGreeting {
  readonly node: string
  readonly cacheRoot: string
  readonly policy: CachePolicy
  readonly datasets: readonly Dataset[]
  /** The user who asks, as the service sees them. Absent where it takes no credentials of users. */
  readonly uid?: number
  /** Clock of the record, Unix epoch in ms. */
  readonly nowMs: number
  /** The version of dsc. */
  readonly version: string
}

/** The path of an operation, such as `/door/2/prepare`. */
export function pathOfOperation(operation: string): string {
  return `/door/${DOOR_VERSION}/${operation}`
}
