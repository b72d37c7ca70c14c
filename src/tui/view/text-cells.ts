// Text measured in terminal cells. A task name may be any text that somebody passed to `--task`.

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const ZERO_WIDTH = /^(?:\p{M}|\p{Cf})$/u
const EMOJI = /^\p{Emoji_Presentation}$/u
const PLAIN = /^[\u0020-\u007e]*$/

/** Replaces what could move the cursor, change colours or turn the direction of text. */
export function withoutControls(text: string): string {
  return PLAIN.test(text) ? text : text.replace(CONTROL, '?')
}

/** How many cells the text takes on a terminal. */
export function cellWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

/** Cuts or fills the text to exactly `width` cells; what was cut ends in `ellipsis`. */
export function fitText(
  text: string,
  width: number,
  align: 'left' | 'right' = 'left',
  ellipsis = '…',
): string {
  if (width <= 0) return ''
  const safe = withoutControls(text)
  const full = cellWidth(safe)
  if (full <= width) {
    const fill = ' '.repeat(width - full)
    return align === 'left' ? safe + fill : fill + safe
  }
  const room = width - cellWidth(ellipsis)
  if (room <= 0) return ellipsis.slice(0, width)
  let kept = ''
  let used = 0
  for (const character of safe) {
    const next = characterWidth(character)
    if (used + next > room) break
    kept += character
    used += next
  }
  return kept + ellipsis + ' '.repeat(room - used)
}

/** Breaks text into pieces of at most `width` cells, at spaces where there are any. */
export function wrapText(raw: string, width: number): readonly string[] {
  const text = withoutControls(raw)
  if (cellWidth(text) <= width) return [text]
  const lines: string[] = []
  let line = ''
  for (const character of text) {
    if (cellWidth(line + character) > Math.max(2, width)) {
      const space = line.lastIndexOf(' ')
      lines.push(space > 0 ? line.slice(0, space) : line)
      line = space > 0 ? line.slice(space + 1) : ''
    }
    line += character
  }
  return [...lines, line]
}

function characterWidth(character: string): number {
  const code = character.codePointAt(0)!
  if (code < 0x300) return 1
  if (ZERO_WIDTH.test(character)) return 0
  const isWide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd) ||
    EMOJI.test(character)
  return isWide ? 2 : 1
}
