/** The meaning of a sign before a state, besides its colour. */
export type Sign = 'staging' | 'used' | 'locked' | 'idle' | 'wrong' | 'left'

/** Characters for drawings. */
export interface Glyphs {
  readonly full: string
  /** Parts of a full cell, the smallest first; empty: only whole cells are drawn. */
  readonly parts: string
  /** Disk space used by others than dsc. */
  readonly others: string
  readonly empty: string
  readonly cursor: string
  readonly rule: string
  readonly side: string
  /** Of a frame: upper left and right, lower left and right. */
  readonly corners: readonly [string, string, string, string]
  readonly dot: string
  readonly ellipsis: string
  /** Whether curves can be drawn in dots of braille; else only their last number is shown. */
  readonly hasBraille: boolean
  /** Between a node and the nodes that send to it. */
  readonly from: string
  /** Between the parts of a trail. */
  readonly into: string
  readonly signs: Readonly<Record<Sign, string>>
}

/** The signs of a terminal that shows UTF-8. */
export const UNICODE_GLYPHS: Glyphs = {
  full: '█',
  parts: '▏▎▍▌▋▊▉',
  others: '▒',
  empty: '░',
  cursor: '▶',
  rule: '─',
  side: '│',
  corners: ['╭', '╮', '╰', '╯'],
  dot: '·',
  ellipsis: '…',
  hasBraille: true,
  from: '←',
  into: '›',
  signs: { staging: '◐', used: '●', locked: '■', idle: '○', wrong: '✖', left: '◌' },
}

/** For terminals whose locale is not UTF-8. */
export const ASCII_GLYPHS: Glyphs = {
  full: '#',
  parts: '',
  others: ':',
  empty: '.',
  cursor: '>',
  rule: '-',
  side: '|',
  corners: ['+', '+', '+', '+'],
  dot: '-',
  ellipsis: '~',
  hasBraille: false,
  from: '<-',
  into: '>',
  signs: { staging: '~', used: '*', locked: '=', idle: 'o', wrong: '!', left: '?' },
}

/** Chooses by the locale, in the C library's order: LC_ALL, LC_CTYPE, LANG. */
export function chooseGlyphs(environment: Readonly<Record<string, string | undefined>>): Glyphs {
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || ''
  return /utf-?8/i.test(locale) ? UNICODE_GLYPHS : ASCII_GLYPHS
}

/** A bar of `width` cells, filled by `ratio` (0 to 1, above is full), in eighths of a cell where the terminal can. */
export function drawBar(ratio: number, width: number, glyphs: Glyphs): string {
  const { filled, empty } = splitBar(ratio, width, glyphs)
  return filled + glyphs.empty.repeat(empty)
}

/** The filled text of a bar, and the cells that stay empty. Anything above 0 shows; only 1 or more fills the last eighth. */
export function splitBar(
  ratio: number,
  width: number,
  { full, parts }: Glyphs,
): { readonly filled: string; readonly empty: number } {
  const steps = parts.length + 1
  const most = width * steps
  const exact = Math.round(ratio * most)
  const taken = ratio >= 1 ? most : ratio > 0 ? Math.min(Math.max(1, exact), Math.max(1, most - 1)) : 0
  const part = taken % steps
  const filled = full.repeat(Math.floor(taken / steps)) + (part > 0 ? parts[part - 1]! : '')
  return { filled, empty: width - filled.length }
}
