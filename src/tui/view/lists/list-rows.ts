import type { Throughput } from '../../../cache/status/throughput.js'
import type { CopyUse } from '../../../model/copy.js'
import type { PlacedLease } from '../../../model/lease.js'
import type { ColumnSpec } from '../text/column-layout.js'
import type { Glyphs } from '../text/glyphs.js'
import type { Span } from '../text/styled-line.js'
import { cellWidth } from '../text/text-cells.js'
import type { ListSort } from './sort-rows.js'

/** The lists of the live screen, from left to right. */
export const TABS = [
  'copies',
  'leases',
  'transfers',
  'events',
  'nodes',
  'waits',
  'datasets',
  'shares',
] as const
/** A list of the live screen. */
export type Tab = (typeof TABS)[number]

/** What drawing a cell depends on besides its row. */
export interface DrawContext {
  readonly nowMs: number
  readonly utcOffsetMinutes: number
  readonly glyphs: Glyphs
  readonly throughput: Throughput
}

/** Which rows of a list are wanted, and in what order. */
export interface ListChoice {
  /** Words that a row must have. */
  readonly filter: string
  /** Undefined: as the record has them. */
  readonly sort: ListSort | undefined
  /** What rates are sorted by. */
  readonly throughput: Throughput
}

/** A node, a dataset or a copy that lists can be narrowed to. */
export interface ScopeTarget {
  readonly node?: string
  readonly dataset?: string
  readonly copyId?: string
  /** For people. */
  readonly label: string
}

/** One list of the screen: filtered, sorted, and able to draw any of its rows. Only visible rows are drawn. */
export interface ListRows {
  readonly tab: Tab
  readonly columns: readonly ColumnSpec[]
  /** Titles of the columns that it can be sorted by. */
  readonly sortable: readonly string[]
  /** The column that it is sorted by, whose title stands out. */
  readonly sortedBy?: string
  readonly keys: readonly string[]
  /** Rows before the filter. */
  readonly total: number
  /** The copy that row `index` is about; undefined where it is about none. */
  readonly copyIdAt: (index: number) => string | undefined
  /** What Enter goes into, where the rows are about more than one copy. */
  readonly scopeAt?: (index: number) => ScopeTarget | undefined
  /** The same as a copy, where the rows are copies: spares looking for it among all. */
  readonly copyAt?: (index: number) => CopyUse | undefined
  /** The lease that row `index` is, where the rows are leases. */
  readonly leaseAt?: (index: number) => PlacedLease | undefined
  /** One span per column, in the order of `columns`. */
  readonly drawAt: (index: number, widths: readonly number[], context: DrawContext) => readonly Span[]
  readonly emptyText: string
}

/** Cells of the longest text, at least `least`, at most `most`: a column as wide as what it holds. */
export function widthOf(texts: Iterable<string>, least: number, most: number): number {
  let widest = least
  for (const text of texts) {
    if (text.length > widest) widest = Math.max(widest, Math.min(most, cellWidth(text)))
    if (widest >= most) break
  }
  return widest
}

/** Whether any of the texts contains every word of the filter, without regard to case. */
export function matchesFilter(filter: string, texts: readonly (string | null)[]): boolean {
  if (filter === '') return true
  const all = texts.join('\u0000').toLowerCase()
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word))
}
