import type { SortOrder } from './lists/copy-rows.js'
import type { ListPosition } from './lists/list-position.js'
import { START } from './lists/list-position.js'
import type { Tab } from './lists/list-rows.js'

/** What the keys mean at the moment. */
type Mode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'filter'; readonly before: string }
  | { readonly kind: 'detail'; readonly copyId: string; readonly scroll: number }
  | { readonly kind: 'help'; readonly scroll: number }
  | {
      readonly kind: 'confirm-evict'
      readonly copyId: string
      readonly dataset: string
      readonly question: string
    }
  | {
      readonly kind: 'ask-lock-reason'
      readonly copyId: string
      readonly dataset: string
      readonly text: string
    }
  | { readonly kind: 'ask-dataset'; readonly text: string }

/** The outcome of an action, shown in the last line until the next key. */
export interface Message {
  readonly text: string
  readonly isError: boolean
}

/** Everything about the screen that the user has chosen. */
export interface ScreenState {
  readonly tab: Tab
  readonly positions: Readonly<Record<Tab, ListPosition>>
  readonly filter: string
  readonly sort: SortOrder
  readonly mode: Mode
  /** The copy whose details show while a question is asked about it; undefined = the list shows. */
  readonly detailCopyId: string | undefined
  readonly message: Message | undefined
}

/** The live screen as it opens. */
export const FIRST_SCREEN: ScreenState = {
  tab: 'copies',
  positions: { copies: START, leases: START, transfers: START, events: START, nodes: START },
  filter: '',
  sort: 'name',
  mode: { kind: 'browse' },
  detailCopyId: undefined,
  message: undefined,
}

/** What a key asks for beyond the screen itself. */
export type Effect =
  | { readonly kind: 'quit' }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'refresh' }
  | Action

/** What a key asks to have done to the cache. */
export type Action =
  | { readonly kind: 'lock'; readonly copyId: string; readonly dataset: string; readonly reason: string }
  | { readonly kind: 'unlock'; readonly copyId: string; readonly dataset: string }
  | { readonly kind: 'evict'; readonly copyId: string; readonly dataset: string }
  | { readonly kind: 'prepare'; readonly dataset: string }
