import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import { findTrouble } from './find-trouble.js'
import type { DrawContext } from './lists/list-rows.js'
import type { ScreenInput } from './screen-input.js'
import type { ScreenState } from './screen-state.js'
import { formatClock, formatSpan } from './text/format-cells.js'
import { drawSpark } from './text/glyphs.js'
import { fitLine, type Line, span, spreadLine } from './text/styled-line.js'
import { cellWidth, fitText, wrapText } from './text/text-cells.js'

/** The first line: what is wrong, in red, or else the record's location; the rate and the clock. */
export function drawTitle({ snapshot, problem, size, context }: ScreenInput): Line {
  const width = size.columns
  const clock = span(` ${formatClock(context.nowMs, context.utcOffsetMinutes)} `)
  const speed = drawSpeed(context, width)
  const name = span(' dsc status ', { isBold: true })
  if (problem) {
    const since = formatSpan(context.nowMs - problem.sinceMs)
    const text = ` unreachable for ${since}, retrying: ${problem.message}`
    return spreadLine([name, span(fitText(text, cellWidth(text)), { color: 'red' })], [clock], width)
  }
  const trouble = snapshot && findTrouble(snapshot)
  if (trouble !== undefined) {
    const room = width - cellWidth(name.text) - cellWidth(clock.text)
    const text = fitText(` ${trouble}`, room, { ellipsis: context.glyphs.ellipsis })
    return spreadLine([name, span(text, { color: 'red', isBold: true })], [clock], width)
  }
  const where = snapshot ? ` ${snapshot.recordLocation}` : ' reading the record'
  return spreadLine([name, span(where, { isDim: true })], [...speed, clock], width)
}

/** The download rate of all nodes over the last minute; empty without downloads or space. */
function drawSpeed({ throughput, glyphs }: DrawContext, width: number): Line {
  const { total } = throughput
  if (width < MIN_SPEED_COLUMNS || !total.some((rate) => rate > 0)) return []
  const text = `${drawSpark(total, SPEED_CELLS, glyphs)} ${formatByteSize(total.at(-1) ?? 0)}/s `
  return [span(` ${text}`, { color: 'cyan' })]
}

/** A narrower screen has no space for the rate. */
const MIN_SPEED_COLUMNS = 80
const SPEED_CELLS = 20

const MAX_MESSAGE_LINES = 4

/** The last line: a question, the outcome of an action, or the keys. A long outcome takes up to four lines. */
export function drawFooter(state: ScreenState, width: number): readonly Line[] {
  const asks = !['browse', 'detail', 'help', 'report'].includes(state.mode.kind)
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
  const keys =
    state.mode.kind === 'detail'
      ? ['Esc back', 'Enter leases', 'l lock', 'u unlock', 'e evict', '? help', 'q quit']
      : state.mode.kind === 'help' || state.mode.kind === 'report'
        ? ['up down move', 'any key: closes']
        : [
            'Enter look',
            '/ filter',
            's S sort',
            'Tab list',
            'l u lock',
            'e evict',
            'x end',
            'p prepare',
            ': commands',
            '? help',
            'q quit',
          ]
  return fitLine(drawKeys(keys, width), width)
}

/** The answers stay visible, however long the question is: a lock's reason is anybody's text. */
function drawQuestion(question: string, width: number): Line {
  const answers = ' y/N '
  const room = width - answers.length - 1
  const text = cellWidth(question) > room ? fitText(question, room) : question
  return fitLine([span(` ${text}${answers}`, { color: 'yellow', isBold: true })], width)
}

/** As many keys as fit; always keeps the last two, help and quit. */
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

/** `3 nodes more`, for items that do not fit. */
export function drawMore(count: number, noun: string, width: number): Line {
  return fitLine(
    [span(`  and ${formatCount(count, `${noun} more`, `${noun}s more`)}`, { isDim: true })],
    width,
  )
}
