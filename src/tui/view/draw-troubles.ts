import type { Trouble } from '../../cache/status/list-troubles.js'
import type { DrawContext } from './lists/list-rows.js'
import { formatSpan } from './text/format-cells.js'
import { type Line, span } from './text/styled-line.js'
import { wrapText } from './text/text-cells.js'

const LABEL_CELLS = 14

/** Everything that is wrong, each with the command that helps or says more. */
export function drawTroubles(
  troubles: readonly Trouble[],
  width: number,
  { nowMs }: DrawContext,
): readonly Line[] {
  const room = Math.max(10, width - LABEL_CELLS - 1)
  if (troubles.length === 0) return [[span(' Nothing is wrong.', { color: 'green' })]]
  return [
    [span(' What is wrong', { isBold: true })],
    [],
    ...troubles.flatMap(({ kind, text, sinceMs, command }): Line[] => {
      const label = (at: number) => {
        if (at === 0) return span(` ${kind}`.padEnd(LABEL_CELLS), { color: 'red', isBold: true })
        const age = at === 1 && sinceMs !== undefined ? ` for ${formatSpan(nowMs - sinceMs)}` : ''
        return span(age.padEnd(LABEL_CELLS), { isDim: true })
      }
      const rows: Line = [...wrapText(text, room).map((row) => span(row)), span(command, { color: 'green' })]
      return [...rows.map((part, at): Line => [label(at), part]), []]
    }),
  ]
}
