// Text measured in terminal cells. A task name may be any text that somebody passed to `--task`.
import cliTruncate from 'cli-truncate'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const PLAIN = /^[\u0020-\u007e]*$/

/** Replaces characters that could move the cursor, change colours or reverse the direction of text. */
export function withoutControls(text: string): string {
  return PLAIN.test(text) ? text : text.replace(CONTROL, '?')
}

/** The width of the text in terminal cells. */
export function cellWidth(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text)
}

/** How to fit a text into its cells. */
interface Fit {
  /** Default: left. */
  readonly align?: 'left' | 'right' | undefined
  /** Marks the end of a truncated text. Default: `…`. */
  readonly ellipsis?: string
}

/** Truncates or pads the text to exactly `width` cells. */
export function fitText(text: string, width: number, { align = 'left', ellipsis = '…' }: Fit = {}): string {
  if (width <= 0) return ''
  const safe = withoutControls(text)
  const given = cellWidth(safe)
  if (given > width && PLAIN.test(safe))
    // as nearly all text; cliTruncate takes long
    return safe.slice(0, Math.max(0, width - cellWidth(ellipsis))) + ellipsis
  const cut = given <= width ? safe : cliTruncate(safe, width, { truncationCharacter: ellipsis })
  const fill = ' '.repeat(width - (given <= width ? given : cellWidth(cut)))
  return align === 'left' ? cut + fill : fill + cut
}

/** Breaks text into pieces of at most `width` cells, at spaces if possible. */
export function wrapText(raw: string, width: number): readonly string[] {
  return wrapAnsi(withoutControls(raw), Math.max(2, width), { hard: true }).split('\n')
}
