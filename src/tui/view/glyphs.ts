/** The characters that pictures are made of. */
export interface Glyphs {
  readonly full: string
  readonly empty: string
  readonly cursor: string
  readonly rule: string
  readonly side: string
  readonly dot: string
  readonly ellipsis: string
  /** Between a node and those that send to it. */
  readonly from: string
}

export const UNICODE_GLYPHS: Glyphs = {
  full: '█',
  empty: '░',
  cursor: '▶',
  rule: '─',
  side: '│',
  dot: '·',
  ellipsis: '…',
  from: '←',
}

/** For terminals whose locale is not UTF-8. */
export const ASCII_GLYPHS: Glyphs = {
  full: '#',
  empty: '.',
  cursor: '>',
  rule: '-',
  side: '|',
  dot: '-',
  ellipsis: '~',
  from: '<-',
}

/** Chooses by the locale, in the order in which the C library looks: LC_ALL, LC_CTYPE, LANG. */
export function chooseGlyphs(environment: Readonly<Record<string, string | undefined>>): Glyphs {
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || ''
  return /utf-?8/i.test(locale) ? UNICODE_GLYPHS : ASCII_GLYPHS
}

/** A bar of `width` cells, `ratio` (0 to 1, more is full) of them filled; anything above 0 shows. */
export function drawBar(ratio: number, width: number, glyphs: Glyphs): string {
  const wanted = Math.round(Math.min(1, Math.max(0, ratio)) * width)
  // Full means full: 99 % leaves a cell empty, 1 % fills one.
  const filled = ratio >= 1 ? width : ratio > 0 ? Math.min(Math.max(1, wanted), Math.max(1, width - 1)) : 0
  return glyphs.full.repeat(filled) + glyphs.empty.repeat(width - filled)
}
