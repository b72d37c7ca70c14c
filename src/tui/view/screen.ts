import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { listTroubles, type Trouble } from '../../cache/status/list-troubles.js'
import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import { drawCopyDetail } from './copy-detail.js'
import { drawDay } from './draw-day.js'
import { drawHelp } from './help-lines.js'
import { completeCommand } from './keys/complete-command.js'
import { drawList } from './lists/draw-list.js'
import { listEventRows } from './lists/event-rows.js'
import { placeList } from './lists/list-position.js'
import type { DrawContext } from './lists/list-rows.js'
import { drawFooter, drawRule, drawTitle } from './screen-frame.js'
import type { ScreenInput } from './screen-input.js'
import { planScreen, type ScreenPlan, type ScreenSize } from './screen-plan.js'
import { drawCopyTrail, drawTabs } from './tab-bar.js'
import { formatSpan } from './text/format-cells.js'
import { fitLine, type Line, span } from './text/styled-line.js'
import { withoutControls, wrapText } from './text/text-cells.js'

const EVERYTHING = { filter: '', sort: undefined }
const MOST_CANDIDATES = 6

/** Draws the whole screen: exactly `size.rows` lines of exactly `size.columns` cells. */
export function drawScreen(input: ScreenInput): readonly Line[] {
  const { snapshot, state, size } = input
  const title = drawTitle(input)
  const footer = drawFooter(state, size.columns)
  if (!snapshot) return fitHeight([title], footer, size)
  const read = readableText(input, snapshot)
  if (read)
    return fitHeight([title, [], ...scrollLines(read.lines, read.scroll, size.rows - 3)], footer, size)
  const plan = planScreen(state, size)
  const head = [title, ...drawDay(input, plan.dayRows), drawTabsOrTrail(input, plan, snapshot)]
  const tail = [...drawEvents(input, plan), ...footer]
  const lines = fitHeight([...head, ...drawMain(input, plan)], tail, size)
  return withCandidates(lines, input, footer.length)
}

/** The help, the report or the list of what is wrong, where one of them covers the lists. */
function readableText({ state, size, context, report }: ScreenInput, snapshot: StatusSnapshot) {
  const { mode } = state
  switch (mode.kind) {
    case 'help':
      return { lines: drawHelp(state, size.columns, context.glyphs), scroll: mode.scroll }
    case 'troubles':
      return { lines: drawTroubles(listTroubles(snapshot), size.columns, context), scroll: mode.scroll }
    case 'report': {
      const text = report?.(size.columns - 2) ?? ['Reading the history.']
      return { lines: text.map((line): Line => [span(` ${withoutControls(line)}`)]), scroll: mode.scroll }
    }
    default:
      return undefined
  }
}

/** A copy that covers the list says how one came to it. */
function drawTabsOrTrail(input: ScreenInput, plan: ScreenPlan, snapshot: StatusSnapshot): Line {
  const isCovered = input.state.detailCopyId !== undefined && plan.sideColumns === 0
  const copy = isCovered ? findShownCopy(input, plan.listHeight) : undefined
  return copy ? drawCopyTrail(input, copy.dataset) : drawTabs(input, snapshot)
}

/** Shows the commands that begin as typed, over the end of the list; Tab takes the first. */
function withCandidates(lines: readonly Line[], input: ScreenInput, footerRows: number): readonly Line[] {
  const { mode } = input.state
  if (mode.kind !== 'command') return lines
  const candidates = completeCommand(mode.text, input).slice(0, MOST_CANDIDATES)
  const drawn = candidates.map(({ text, does }, at) =>
    fitLine(
      [span(` :${text}`.padEnd(24), { isBold: true }), span(does, at === 0 ? {} : { isDim: true })].map(
        (part) => ({ ...part, isInverse: at === 0 }),
      ),
      input.size.columns,
    ),
  )
  const room = Math.max(0, lines.length - footerRows - 1)
  const shown = drawn.slice(0, room)
  const from = lines.length - footerRows - shown.length
  return [...lines.slice(0, from), ...shown, ...lines.slice(lines.length - footerRows)]
}

/** The copy under the cursor, or the one in the details. */
export function findShownCopy(
  { snapshot, state, rows }: Pick<ScreenInput, 'snapshot' | 'state' | 'rows'>,
  listHeight: number,
): CopyUse | undefined {
  const { index } = placeList(state.positions[rows.list], { keys: rows.keys, height: listHeight })
  if (state.detailCopyId === undefined && rows.copyAt) return rows.copyAt(index)
  const copyId = state.detailCopyId ?? rows.copyIdAt(index)
  return copyId === undefined ? undefined : snapshot?.copies.find((copy) => copy.copyId === copyId)
}

/** The lease under the cursor, if the list shows leases. */
export function findShownLease(
  { state, rows }: Pick<ScreenInput, 'state' | 'rows'>,
  listHeight: number,
): PlacedLease | undefined {
  if (state.detailCopyId !== undefined) return undefined
  const { index } = placeList(state.positions[rows.list], { keys: rows.keys, height: listHeight })
  return rows.leaseAt?.(index)
}

function drawMain(input: ScreenInput, plan: ScreenPlan): readonly Line[] {
  const { snapshot, state, rows, size, context } = input
  if (!snapshot) return []
  const copy = findShownCopy(input, plan.listHeight)
  if (state.detailCopyId !== undefined && plan.sideColumns === 0) {
    if (!copy) return [[span('  This copy is gone. Esc goes back.', { color: 'yellow' })]]
    const lines = drawCopyDetail({ copy, snapshot, history: input.copyHistory }, size.columns - 4, context)
    const scroll = state.mode.kind === 'detail' ? state.mode.scroll : 0
    return scrollLines(lines, scroll, plan.listHeight + 1).map((line) => [span('  '), ...line])
  }
  const window = placeList(state.positions[rows.list], { keys: rows.keys, height: plan.listHeight })
  const list = drawList(
    rows,
    {
      offset: window.offset,
      height: plan.listHeight,
      cursor: rows.keys.length > 0 ? window.index : undefined,
      width: size.columns - plan.sideColumns,
    },
    context,
  )
  if (plan.sideColumns === 0) return list
  const lines = copy
    ? drawCopyDetail({ copy, snapshot, history: input.copyHistory }, plan.sideColumns - 4, context)
    : [[span('no copy here', { isDim: true })]]
  const scroll = state.mode.kind === 'detail' ? state.mode.scroll : 0
  const side = scrollLines(lines, scroll, list.length)
  const isFocused = state.mode.kind === 'detail'
  return list.map((line, at) => [
    ...line,
    span(` ${context.glyphs.side} `, isFocused ? { color: 'cyan' } : { isDim: true }),
    ...fitLine(side[at] ?? [], plan.sideColumns - 3),
  ])
}

function drawEvents(input: ScreenInput, plan: ScreenPlan): readonly Line[] {
  const { snapshot, size, context } = input
  if (!snapshot || plan.eventRows === 0) return []
  const rows = listEventRows(snapshot, { ...EVERYTHING, throughput: context.throughput })
  const list = drawList(rows, { offset: 0, height: plan.eventRows, width: size.columns }, context)
  return [drawRule('Latest events', size.columns, context), ...list.slice(1)]
}

function scrollLines(lines: readonly Line[], scroll: number, height: number): readonly Line[] {
  const offset = Math.max(0, Math.min(scroll, lines.length - height))
  return lines.slice(offset, offset + height)
}

/** Truncates or pads the middle so that `tail` ends at the last row. */
function fitHeight(head: readonly Line[], tail: readonly Line[], size: ScreenSize): readonly Line[] {
  const room = Math.max(0, size.rows - tail.length)
  const top = head.slice(0, room)
  const fill = Array.from({ length: room - top.length }, (): Line => [])
  return [...top, ...fill, ...tail].slice(-size.rows).map((line) => fitLine(line, size.columns))
}

const LABEL_CELLS = 14

/** Everything that is wrong, each with the command that helps or says more. */
function drawTroubles(troubles: readonly Trouble[], width: number, { nowMs }: DrawContext): readonly Line[] {
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
