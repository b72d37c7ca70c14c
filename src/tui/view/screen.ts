import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { NO_THROUGHPUT } from '../../cache/status/throughput.js'
import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import { drawCopyDetail } from './copy-detail.js'
import { drawHelp } from './help-lines.js'
import { drawList } from './lists/draw-list.js'
import { listEventRows } from './lists/event-rows.js'
import { placeList } from './lists/list-position.js'
import type { ListRows } from './lists/list-rows.js'
import { FULLEST, listNodeRows } from './lists/node-rows.js'
import { listTransferRows } from './lists/transfer-rows.js'
import { drawFooter, drawMore, drawRule, drawTitle } from './screen-frame.js'
import type { ScreenInput } from './screen-input.js'
import { planScreen, type ScreenPlan, type ScreenSize } from './screen-plan.js'
import { drawTabs } from './tab-bar.js'
import { fitLine, type Line, span } from './text/styled-line.js'
import { withoutControls } from './text/text-cells.js'

const EVERYTHING = { filter: '', sort: undefined }

/** Draws the whole screen: exactly `size.rows` lines of exactly `size.columns` cells. */
export function drawScreen(input: ScreenInput): readonly Line[] {
  const { snapshot, state, size } = input
  const title = drawTitle(input)
  const footer = drawFooter(state, size.columns)
  if (!snapshot) return fitHeight([title], footer, size)
  if (state.mode.kind === 'help') {
    return fitHeight(
      [title, [], ...scrollLines(drawHelp(size.columns), state.mode.scroll, size.rows - 3)],
      footer,
      size,
    )
  }
  if (state.mode.kind === 'report') {
    const text = input.report?.(size.columns - 2) ?? ['Reading the history.']
    const lines = text.map((line): Line => [span(` ${withoutControls(line)}`)])
    return fitHeight([title, [], ...scrollLines(lines, state.mode.scroll, size.rows - 3)], footer, size)
  }
  const plan = planScreen(snapshot, state, size)
  const head = [title, ...drawNodes(input, plan), ...drawTransfers(input, plan)]
  const tail = [...drawEvents(input, plan), ...footer]
  return fitHeight([...head, drawTabs(input, snapshot), ...drawMain(input, plan)], tail, size)
}

/** The copy under the cursor, or the one in the details. */
export function findShownCopy(
  { snapshot, state, rows }: Pick<ScreenInput, 'snapshot' | 'state' | 'rows'>,
  listHeight: number,
): CopyUse | undefined {
  const { index } = placeList(state.positions[rows.tab], { keys: rows.keys, height: listHeight })
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
  const { index } = placeList(state.positions[rows.tab], { keys: rows.keys, height: listHeight })
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
  const window = placeList(state.positions[rows.tab], { keys: rows.keys, height: plan.listHeight })
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

function drawNodes({ snapshot, size, context }: ScreenInput, plan: ScreenPlan): readonly Line[] {
  const height = plan.nodeRows
  const width = size.columns
  if (!snapshot || height === 0) return []
  const rows = chooseNodes(snapshot, plan)
  const hidden = rows.keys.length - height
  const shown = hidden > 0 ? height - 1 : height
  const lines = drawList(rows, { offset: 0, height: shown, width }, context)
  return hidden > 0 ? [...lines, drawMore(hidden + 1, 'node', width)] : lines
}

/** The nodes above the list, in its order; if not all fit, the fullest first. */
function chooseNodes(snapshot: StatusSnapshot, { nodeRows }: ScreenPlan): ListRows {
  const sort = snapshot.nodes.length > nodeRows ? FULLEST : undefined
  return listNodeRows(snapshot, { ...EVERYTHING, sort, throughput: NO_THROUGHPUT })
}

/** Names of the nodes above the list, from the first row to the last. */
export function listShownNodes(snapshot: StatusSnapshot, plan: ScreenPlan): readonly string[] {
  const { keys } = chooseNodes(snapshot, plan)
  return keys.slice(0, keys.length > plan.nodeRows ? plan.nodeRows - 1 : plan.nodeRows)
}

function drawTransfers(input: ScreenInput, plan: ScreenPlan): readonly Line[] {
  const { snapshot, size, context } = input
  if (!snapshot || plan.transferRows === 0) return []
  const rows = listTransferRows(snapshot, { ...EVERYTHING, throughput: context.throughput })
  const list = drawList(rows, { offset: 0, height: plan.transferRows, width: size.columns }, context)
  const hidden = rows.keys.length - plan.transferRows
  const title = hidden > 0 ? `Staging, ${hidden} more under 3` : 'Staging'
  return [drawRule(title, size.columns, context), ...list.slice(1)]
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
