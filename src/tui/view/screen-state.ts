import { type ListPosition, START } from './lists/list-position.js'
import { GROUPS, type ListName, type ScopeTarget, type Tab } from './lists/list-rows.js'
import type { ListSort } from './lists/sort-rows.js'
import type { ThemeName } from './text/theme.js'

/** The current meaning of the keys. */
type Mode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'filter'; readonly before: string }
  | { readonly kind: 'detail'; readonly copyId: string; readonly scroll: number }
  | { readonly kind: 'help'; readonly scroll: number }
  | { readonly kind: 'troubles'; readonly scroll: number }
  /** Over the last `sinceMs`. */
  | { readonly kind: 'report'; readonly sinceMs: number; readonly scroll: number }
  | {
      readonly kind: 'confirm'
      readonly question: string
      /** The action after a yes. */
      readonly action: Action
      /** The message after any other key. */
      readonly refusal: string
    }
  /** `back`: how many commands of the history ago the text was typed; 0 = it is new. */
  | { readonly kind: 'command'; readonly text: string; readonly back: number }
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

/** The entered item, and the way back. */
export interface Scope extends ScopeTarget {
  /** The list from which it was entered. */
  readonly from: ListName
  /** The scope of that list. */
  readonly outer: Scope | undefined
}

/** All choices of the user on the screen. */
export interface ScreenState {
  readonly tab: Tab
  /** Tabs that show their rows in groups. */
  readonly grouped: Readonly<Partial<Record<Tab, boolean>>>
  readonly positions: Readonly<Record<ListName, ListPosition>>
  readonly filter: string
  readonly sorts: Readonly<Partial<Record<ListName, ListSort>>>
  /** The scope of the lists; undefined = everything. */
  readonly scope: Scope | undefined
  readonly mode: Mode
  /** The copy in the details while a question is asked about it; undefined = the list is visible. */
  readonly detailCopyId: string | undefined
  readonly message: Message | undefined
  /** Commands typed after `:`, the latest last. */
  readonly commands: readonly string[]
  /** Whether the screen handles the mouse; else the terminal does, to select text. */
  readonly isMouseOn: boolean
  readonly theme: ThemeName
}

/** Every list at its top. */
export const FIRST_POSITIONS: Readonly<Record<ListName, ListPosition>> = {
  copies: START,
  datasets: START,
  leases: START,
  jobs: START,
  events: START,
  nodes: START,
  shares: START,
}

/** The initial live screen. */
export const FIRST_SCREEN: ScreenState = {
  tab: 'copies',
  grouped: {},
  positions: FIRST_POSITIONS,
  filter: '',
  sorts: {},
  scope: undefined,
  mode: { kind: 'browse' },
  detailCopyId: undefined,
  message: undefined,
  commands: [],
  isMouseOn: true,
  theme: 'terminal',
}

/** A key's request beyond the screen itself. */
export type Effect =
  | { readonly kind: 'quit' }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'refresh' }
  | Action

/** A key's request to change the cache. */
export type Action =
  | { readonly kind: 'lock'; readonly copyId: string; readonly dataset: string; readonly reason: string }
  | { readonly kind: 'unlock'; readonly copyId: string; readonly dataset: string }
  | { readonly kind: 'evict'; readonly copyId: string; readonly dataset: string }
  | { readonly kind: 'release'; readonly leaseId: string; readonly dataset: string; readonly task: string }
  | { readonly kind: 'cancel'; readonly copyId: string; readonly dataset: string }
  | { readonly kind: 'prepare'; readonly dataset: string }
  | { readonly kind: 'undo' }

/** The list that the tab shows: its own, or its rows in groups. */
export function findList({ tab, grouped }: Pick<ScreenState, 'tab' | 'grouped'>): ListName {
  return grouped[tab] && tab !== 'events' ? GROUPS[tab] : tab
}
