import { cellWidth, fitText, withoutControls } from './text-cells.js'

/** Colours that every terminal has. */
export type Colour = 'green' | 'yellow' | 'red' | 'cyan' | 'blue' | 'magenta'

/** A stretch of text with one look. */
export interface Span {
  readonly text: string
  readonly color?: Colour
  readonly isBold?: boolean
  readonly isDim?: boolean
  readonly isInverse?: boolean
  /** On the row under the cursor: only the ground changes, the colour stays. */
  readonly isChosen?: boolean
}

/** One row of the screen. */
export type Line = readonly Span[]

/** A stretch of text with one look; plain by default. */
export function span(text: string, look: Omit<Span, 'text'> = {}): Span {
  return { text, ...look }
}

/** The text of a line without its looks. */
export function lineText(line: Line): string {
  return line.map((part) => part.text).join('')
}

/** Merges neighbors with the same look: fewer stretches are faster to draw. */
export function joinSpans(line: Line): Line {
  const joined: Span[] = []
  for (const part of line) {
    const last = joined.at(-1)
    if (last && hasSameLook(last, part)) joined[joined.length - 1] = { ...last, text: last.text + part.text }
    else joined.push(part)
  }
  return joined
}

/** Whether two lines look the same. */
export function isSameLine(a: Line, b: Line): boolean {
  return (
    a.length === b.length && a.every((part, at) => part.text === b[at]!.text && hasSameLook(part, b[at]!))
  )
}

function hasSameLook(a: Span, b: Span): boolean {
  return (
    a.color === b.color &&
    (a.isBold ?? false) === (b.isBold ?? false) &&
    (a.isDim ?? false) === (b.isDim ?? false) &&
    (a.isInverse ?? false) === (b.isInverse ?? false) &&
    (a.isChosen ?? false) === (b.isChosen ?? false)
  )
}

/** Cuts or fills a line to exactly `width` cells, without characters that would move the cursor. */
export function fitLine(line: Line, width: number): Line {
  const parts: Span[] = []
  let left = width
  for (const part of line) {
    if (left <= 0) break
    const safe = withoutControls(part.text)
    const own = cellWidth(safe)
    const text = own <= left ? safe : fitText(safe, left)
    parts.push({ ...part, text })
    left -= Math.min(own, left)
  }
  if (left > 0) parts.push({ text: ' '.repeat(left) })
  return parts
}

/** Puts `left` and `right` at the two ends of a line; shortens the left one if necessary. */
export function spreadLine(left: Line, right: Line, width: number): Line {
  const rightWidth = cellWidth(lineText(right))
  if (rightWidth >= width) return fitLine(right, width)
  return [...fitLine(left, width - rightWidth), ...right]
}
