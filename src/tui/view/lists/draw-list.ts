import { layoutColumns, squeezeColumns } from '../text/column-layout.js'
import { fitLine, type Line, type Span, span } from '../text/styled-line.js'
import { fitText } from '../text/text-cells.js'
import type { Cell, DrawContext, ListRows } from './list-rows.js'

const GAP = 2
const MARGIN = 2
/** Block elements: inverse, the two ends of a bar would swap. */
const BAR = /^[\u2580-\u259f]+$/u

/** The visible part of a list, and its size in cells. */
interface ListArea {
  /** Index of the first row. */
  readonly offset: number
  readonly height: number
  /** Index of the row under the cursor; undefined = none. */
  readonly cursor?: number | undefined
  readonly width: number
}

/** The columns of a list that fit. */
function placeColumns(rows: ListRows, width: number) {
  const room = width - MARGIN
  return squeezeColumns(layoutColumns(rows.columns, room, GAP), room, GAP)
}

/** The title of the column at this cell of a list line; undefined between and beyond columns. */
export function findColumn(rows: ListRows, width: number, cell: number): string | undefined {
  let from = MARGIN
  for (const { index, width: cells } of placeColumns(rows, width)) {
    if (cell >= from && cell < from + cells) return rows.columns[index]!.title
    from += cells + GAP
  }
  return undefined
}

/** Draws a list's heading and the rows of the area, each exactly as wide as it. */
export function drawList(rows: ListRows, area: ListArea, context: DrawContext): readonly Line[] {
  const { width } = area
  const { ellipsis } = context.glyphs
  const placed = placeColumns(rows, width)
  const widths: number[] = []
  for (const column of placed) widths[column.index] = column.width
  const heading = placed.flatMap(({ index, width: cells }, at): Span[] => {
    const { title, align } = rows.columns[index]!
    const look = title === rows.sortedBy ? ({ color: 'cyan', isBold: true } as const) : { isDim: true }
    return [span(' '.repeat(at === 0 ? MARGIN : GAP)), span(fitText(title, cells, { align, ellipsis }), look)]
  })
  const lines: Line[] = [fitLine(heading, width)]
  const last = Math.min(rows.keys.length, area.offset + area.height)
  for (let index = area.offset; index < last; index += 1) {
    lines.push(drawRow(index))
  }
  if (rows.keys.length === 0 && area.height > 0) {
    lines.push([span(fitText(`  ${rows.emptyText}`, width), { isDim: true })])
  }
  while (lines.length < area.height + 1) lines.push([span(' '.repeat(width))])
  return lines

  function drawRow(index: number): Line {
    const isCursor = index === area.cursor
    const cells = rows.drawAt(index, widths, context)
    const line: Span[] = [span(isCursor ? fitText(context.glyphs.cursor, MARGIN) : ' '.repeat(MARGIN))]
    let used = MARGIN
    for (const [at, { index: column, width: cellWidth }] of placed.entries()) {
      const isLast = at === placed.length - 1
      line.push(...fitCell(cells[column] ?? [], cellWidth, rows.columns[column]!.align))
      used += cellWidth
      if (!isLast) line.push(span(' '.repeat(GAP)))
      if (!isLast) used += GAP
    }
    if (used < width) line.push(span(' '.repeat(width - used)))
    return isCursor ? line.map((part) => ({ ...part, isChosen: !BAR.test(part.text) })) : line
  }

  function fitCell(cell: Cell, width: number, align: 'left' | 'right' | undefined): readonly Span[] {
    if (Array.isArray(cell)) return fitLine(cell, width)
    const one = cell as Span
    return [{ ...one, text: fitText(one.text, width, { align, ellipsis }) }]
  }
}
