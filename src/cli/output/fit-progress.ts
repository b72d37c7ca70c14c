import { drawBar, type Glyphs } from '../../tui/view/text/glyphs.js'

const MIN_BAR_CELLS = 10
const MAX_BAR_CELLS = 40

/** How to draw a line of progress. */
interface ProgressFit {
  /** 0 to 1; undefined: unknown, and no bar. */
  readonly doneRatio: number | undefined
  /** Cells of the terminal to fill at most, 1 or more. */
  readonly width: number
  readonly glyphs: Glyphs
}

/**
 * Fits a line of progress to a terminal, with a bar before it. The line's facts are separated by commas, the most
 * important first: those that do not fit beside a bar of 10 cells are left out.
 */
export function fitProgress(line: string, { doneRatio, width, glyphs }: ProgressFit): string {
  if (doneRatio === undefined) return line.slice(0, width)
  const done = Math.min(1, Math.max(0, doneRatio))
  const percent = `${String(Math.floor(done * 100)).padStart(3)} %`
  const facts = line.split(', ')
  const roomBeside = () => width - percent.length - facts.join(', ').length - 2
  while (facts.length > 1 && roomBeside() < MIN_BAR_CELLS) facts.pop()
  const text = `${percent} ${facts.join(', ')}`
  const cells = Math.min(MAX_BAR_CELLS, roomBeside())
  if (cells < MIN_BAR_CELLS) return text.slice(0, width)
  return `${drawBar(done, cells, glyphs)} ${text}`
}
