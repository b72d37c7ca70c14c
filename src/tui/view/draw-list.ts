import { layoutColumns, squeezeColumns } from './column-layout.js'
import type { DrawContext, ListRows } from './list-rows.js'
import { type Line, type Span, span } from './styled-line.js'
import { fitText } from './text-cells.js'

const GAP = 2
const MARGIN = 2

/** Draws a list's heading and the `height` rows from `offset` on, each exactly `width` cells. */
export function drawList(
  rows: ListRows,
  window: { readonly offset: number; readonly height: number; readonly cursor: number | undefined },
  width: number,
  context: DrawContext,
): readonly Line[] {
  const room = width - MARGIN
  const placed = squeezeColumns(layoutColumns(rows.columns, room, GAP), room, GAP)
  const widths: number[] = []
  for (const column of placed) widths[column.index] = column.width
  const heading: Span = span(
    fitText(
      ' '.repeat(MARGIN) +
        placed
          .map(({ index, width: cells }) => {
            const { title, align } = rows.columns[index]!
            return fitText(title, cells, align ?? 'left', context.glyphs.ellipsis)
          })
          .join(' '.repeat(GAP)),
      width,
    ),
    { isDim: true },
  )
  const lines: Line[] = [[heading]]
  const last = Math.min(rows.keys.length, window.offset + window.height)
  for (let index = window.offset; index < last; index += 1) {
    lines.push(drawRow(index))
  }
  if (rows.keys.length === 0 && window.height > 0) {
    lines.push([span(fitText(`  ${rows.emptyText}`, width), { isDim: true })])
  }
  while (lines.length < window.height + 1) lines.push([span(' '.repeat(width))])
  return lines

  function drawRow(index: number): Line {
    const isCursor = index === window.cursor
    const cells = rows.drawAt(index, widths, context)
    const line: Span[] = [span(isCursor ? fitText(context.glyphs.cursor, MARGIN) : ' '.repeat(MARGIN))]
    let used = MARGIN
    for (const [at, { index: column, width: cellWidth }] of placed.entries()) {
      const cell = cells[column] ?? span('')
      const align = rows.columns[column]!.align ?? 'left'
      const isLast = at === placed.length - 1
      const text = fitText(cell.text, cellWidth, align, context.glyphs.ellipsis)
      line.push({ ...cell, text })
      used += cellWidth
      if (!isLast) line.push(span(' '.repeat(GAP)))
      if (!isLast) used += GAP
    }
    if (used < width) line.push(span(' '.repeat(width - used)))
    return isCursor
      ? line.map((part) => ({ text: part.text, isInverse: true, isBold: part.isBold ?? false }))
      : line
  }
}
