import type { Throughput } from '../../../cache/status/throughput.js'
import type { CopyUse } from '../../../model/copy.js'
import type { PlacedLease } from '../../../model/lease.js'
import type { ColumnSpec } from '../text/column-layout.js'
import type { Glyphs } from '../text/glyphs.js'
import type { Span } from '../text/styled-line.js'
import { cellWidth } from '../text/text-cells.js'
import type { ListSort } from './sort-rows.js'

/** The tabs of the live screen, from left to right. */
export const TABS = ['copies', 'leases', 'events', 'nodes'] as const
/** A tab of the live screen. */
export type Tab = (typeof TABS)[number]

/** The groups into which `g` gathers the rows of a tab; events are in the order of time alone. */
export const GROUPS = { copies: 'datasets', leases: 'jobs', nodes: 'shares' } as const
/** A list: a tab's own, or its rows in groups. */
export type ListName = Tab | (typeof GROUPS)[keyof typeof GROUPS]

/** The tab that shows a list. */
export function findTabOf(list: ListName): Tab {
  const grouped = (Object.keys(GROUPS) as (keyof typeof GROUPS)[]).find((tab) => GROUPS[tab] === list)
  return grouped ?? (list as Tab)
}

/** A cell of a list: one look, or several side by side, as in a bar. */
export type Cell = Span | readonly Span[]

/** Inputs for drawing a cell, besides its row. */
export interface DrawContext {
  readonly nowMs: number
  readonly utcOffsetMinutes: number
  readonly glyphs: Glyphs
  readonly throughput: Throughput
}

/** The rows to show, and their order. */
export interface ListChoice {
  /** Words that a row must contain. */
  readonly filter: string
  /** Undefined: the record's order. */
  readonly sort: ListSort | undefined
  /** For sorting by rates. */
  readonly throughput: Throughput
}

/** A node, dataset, copy or job that lists can be restricted to. */
export interface ScopeTarget {
  readonly node?: string
  readonly dataset?: string
  readonly copyId?: string
  readonly task?: string
  /** The list that shows it. */
  readonly opens: ListName
  /** For people. */
  readonly label: string
}

/** One list of the screen: filtered, sorted, and able to draw any of its rows. Only visible rows are drawn. */
export interface ListRows {
  readonly list: ListName
  readonly columns: readonly ColumnSpec[]
  /** Titles of the sortable columns. */
  readonly sortable: readonly string[]
  /** The current sort column, with a highlighted title. */
  readonly sortedBy?: string
  readonly keys: readonly string[]
  /** Number of rows before the filter. */
  readonly total: number
  /** The copy of row `index`; undefined if it has none. */
  readonly copyIdAt: (index: number) => string | undefined
  /** The scope that Enter opens, for rows without a copy. */
  readonly scopeAt?: (index: number) => ScopeTarget | undefined
  /** The copy itself, if rows are copies: avoids searching for it. */
  readonly copyAt?: (index: number) => CopyUse | undefined
  /** The lease of row `index`, if rows are leases. */
  readonly leaseAt?: (index: number) => PlacedLease | undefined
  /** One cell per column, in the order of `columns`. */
  readonly drawAt: (index: number, widths: readonly number[], context: DrawContext) => readonly Cell[]
  readonly emptyText: string
}

/** Cells of the longest text of a row, at least `least`, at most `most`: fits a column to its content. */
export function widthOf<Row>(
  rows: Iterable<Row>,
  textOf: (row: Row) => string,
  [least, most]: readonly [least: number, most: number],
): number {
  let widest = least
  for (const row of rows) {
    const text = textOf(row)
    if (text.length > widest) widest = Math.max(widest, Math.min(most, cellWidth(text)))
    if (widest >= most) break
  }
  return widest
}

/** Whether the texts contain every word of the filter and none of its `-words`, ignoring case. */
export function matchesFilter(filter: string, texts: readonly (string | null)[]): boolean {
  if (filter === '') return true
  const all = texts.join('\u0000').toLowerCase()
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => (/^-./.test(word) ? !all.includes(word.slice(1)) : all.includes(word)))
}
