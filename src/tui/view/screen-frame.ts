import { describeTroubles, listTroubles } from '../../cache/status/list-troubles.js'
import type { DrawContext } from './lists/list-rows.js'
import type { ScreenInput } from './screen-input.js'
import { findList, type ScreenState } from './screen-state.js'
import { formatClock, formatSpan } from './text/format-cells.js'
import { fitLine, type Line, span, spreadLine } from './text/styled-line.js'
import { cellWidth, fitText, wrapText } from './text/text-cells.js'

/** The first line: what is wrong, in red, or else the record's location; the clock. */
export function drawTitle({ snapshot, problem, size, context }: ScreenInput): Line {
  const width = size.columns
  const clock = span(` ${formatClock(context.nowMs, context.utcOffsetMinutes)} `)
  const name = span(' dsc status ', { isBold: true })
  if (problem) {
    const since = formatSpan(context.nowMs - problem.sinceMs)
    const text = ` unreachable for ${since}, retrying: ${problem.message}`
    return spreadLine([name, span(fitText(text, cellWidth(text)), { color: 'red' })], [clock], width)
  }
  const troubles = snapshot ? listTroubles(snapshot) : []
  const trouble = describeTroubles(troubles)
  if (trouble !== undefined) {
    const same = troubles.filter(({ kind }) => kind === troubles[0]!.kind).length
    const others = troubles.length - same
    const more = span(others > 0 ? ` +${others} !` : ' !', { color: 'red', isBold: true })
    const room = width - cellWidth(name.text) - cellWidth(clock.text) - cellWidth(more.text) - 1
    const text = fitText(trouble, room, { ellipsis: context.glyphs.ellipsis })
    const said = span(` ${text}`, { color: 'red', isBold: true })
    return spreadLine([name, said], [more, clock], width)
  }
  const where = snapshot ? ` ${snapshot.recordLocation}` : ' reading the record'
  return spreadLine([name, span(where, { isDim: true })], [clock], width)
}

const MAX_MESSAGE_LINES = 4

/** The last line: a question, the outcome of an action, or the keys. A long outcome takes up to four lines. */
export function drawFooter(state: ScreenState, width: number): readonly Line[] {
  const asks = !['browse', 'detail', 'help', 'troubles', 'report'].includes(state.mode.kind)
  if (!state.message || asks) return [drawLastLine(state, width)]
  const look = state.message.isError
    ? ({ color: 'red', isBold: true } as const)
    : ({ color: 'green' } as const)
  const texts = wrapText(state.message.text, width - 2)
  return texts.slice(0, MAX_MESSAGE_LINES).map((text) => fitLine([span(` ${text}`, look)], width))
}

function drawLastLine(state: ScreenState, width: number): Line {
  const ask = (question: string, text: string): Line => {
    // Long input stays visible at its end.
    const room = Math.max(1, width - cellWidth(question) - 3)
    const typed = [...text].slice(-room).join('')
    return fitLine(
      [span(` ${question} `, { color: 'yellow', isBold: true }), span(typed), span(' ', { isInverse: true })],
      width,
    )
  }
  switch (state.mode.kind) {
    case 'filter':
      return ask('filter:', state.filter)
    case 'ask-dataset':
      return ask('prepare dataset:', state.mode.text)
    case 'ask-lock-reason':
      return ask(`lock ${state.mode.dataset}, because:`, state.mode.text)
    case 'command':
      return ask(':', state.mode.text)
    case 'confirm':
      return drawQuestion(state.mode.question, width)
    default:
  }
  const keys = listFooterKeys(state)
  return fitLine(drawKeys(keys, width), width)
}

function listFooterKeys(state: ScreenState): readonly string[] {
  switch (state.mode.kind) {
    case 'detail':
      return ['Esc back', 'Enter leases', 'l lock', 'u unlock', 'e evict', ': command', '? help', 'q quit']
    case 'help':
    case 'report':
    case 'troubles':
      return ['up down move', ': command', 'any key: closes']
    default:
  }
  const ends = [': command', '? help', 'q quit']
  const starts = ['Enter open', '/ filter', 's sort', 'Tab list']
  switch (findList(state)) {
    case 'copies':
      return [...starts, 'g group', 'p prepare', 'l lock', 'e evict', ...ends]
    case 'leases':
      return [...starts, 'g group', 'x end', ...ends]
    case 'events':
      return [...starts, ...ends]
    default:
      return [...starts, 'g group', ...ends]
  }
}

/** The answers stay visible, however long the question is: a lock's reason is anybody's text. */
function drawQuestion(question: string, width: number): Line {
  const answers = ' y/N '
  const room = width - answers.length - 1
  const text = cellWidth(question) > room ? fitText(question, room) : question
  return fitLine([span(` ${text}${answers}`, { color: 'yellow', isBold: true })], width)
}

/** As many keys as fit; always keeps the last two. */
function drawKeys(keys: readonly string[], width: number): Line {
  const kept = [...keys]
  const textOf = () => kept.reduce((sum, key) => sum + key.length + 2, 0)
  while (textOf() > width && kept.length > 2) kept.splice(Math.min(3, kept.length - 3), 1)
  return kept.flatMap((key) => {
    const space = key.lastIndexOf(' ')
    return [
      span(` ${key.slice(0, space)}`, { color: 'cyan', isBold: true }),
      span(`${key.slice(space)} `, { isDim: true }),
    ]
  })
}

/** A rule with a title in it. */
export function drawRule(title: string, width: number, context: DrawContext): Line {
  const lead = context.glyphs.rule.repeat(2)
  const text = ` ${title} `
  const rest = Math.max(0, width - 2 - cellWidth(text))
  return fitLine(
    [span(lead, { isDim: true }), span(text), span(context.glyphs.rule.repeat(rest), { isDim: true })],
    width,
  )
}
