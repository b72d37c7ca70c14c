/** Characters for drawings. */
export interface Glyphs {
  readonly full: string
  /** Disk space used by others than dsc. */
  readonly others: string
  readonly empty: string
  readonly cursor: string
  readonly rule: string
  readonly side: string
  readonly dot: string
  readonly ellipsis: string
  /** Heights of a small curve, the lowest first. */
  readonly heights: string
  /** Between a node and the nodes that send to it. */
  readonly from: string
}

/** The signs of a terminal that shows UTF-8. */
export const UNICODE_GLYPHS: Glyphs = {
  full: '█',
  others: '▒',
  empty: '░',
  cursor: '▶',
  rule: '─',
  side: '│',
  dot: '·',
  ellipsis: '…',
  heights: '▁▂▃▄▅▆▇█',
  from: '←',
}

/** For terminals whose locale is not UTF-8. */
export const ASCII_GLYPHS: Glyphs = {
  full: '#',
  others: ':',
  empty: '.',
  cursor: '>',
  rule: '-',
  side: '|',
  dot: '-',
  ellipsis: '~',
  heights: '_.-=+*#@',
  from: '<-',
}

/** Chooses by the locale, in the C library's order: LC_ALL, LC_CTYPE, LANG. */
export function chooseGlyphs(environment: Readonly<Record<string, string | undefined>>): Glyphs {
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || ''
  return /utf-?8/i.test(locale) ? UNICODE_GLYPHS : ASCII_GLYPHS
}

/** A bar of `width` cells, filled by `ratio` (0 to 1, above is full); anything above 0 fills a cell. */
export function drawBar(ratio: number, width: number, glyphs: Glyphs): string {
  const filled = countCells(ratio, width)
  return glyphs.full.repeat(filled) + glyphs.empty.repeat(width - filled)
}

/** A bar of two parts of one whole: `own`, then `others` (0 to 1 each); the rest is empty. */
export function drawSharedBar(
  { own, others }: { readonly own: number; readonly others: number },
  width: number,
  glyphs: Glyphs,
): string {
  const taken = countCells(own + others, width)
  const filled = Math.min(countCells(own, width), taken - (others > 0 && taken > 1 ? 1 : 0))
  return (
    glyphs.full.repeat(filled) + glyphs.others.repeat(taken - filled) + glyphs.empty.repeat(width - taken)
  )
}

/** The last rates as a curve of `width` cells; the maximum gets the highest glyph, and only zero gets the lowest. */
export function drawSpark(rates: readonly number[], width: number, { heights }: Glyphs): string {
  const shown = rates.slice(-width)
  const most = Math.max(1, ...shown)
  const steps = [...heights]
  return shown
    .map((rate) => steps[rate <= 0 ? 0 : Math.max(1, Math.round((rate / most) * (steps.length - 1)))])
    .join('')
    .padStart(width)
}

/** Full means full: 99 % leaves a cell empty, 1 % fills one. */
function countCells(ratio: number, width: number): number {
  if (ratio >= 1) return width
  return ratio > 0 ? Math.min(Math.max(1, Math.round(ratio * width)), Math.max(1, width - 1)) : 0
}
