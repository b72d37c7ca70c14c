/** A mouse event on the screen. Cells count from 0, at the upper left. */
export type MouseReport =
  | { readonly kind: 'click'; readonly column: number; readonly row: number }
  | { readonly kind: 'wheel'; readonly direction: 'up' | 'down' }

/** As terminals report in their SGR mode: `ESC [ < button ; column ; row M`, `m` when the button is let go. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape is how it begins
const REPORT = /\u001b\[<(\d{1,5});(\d{1,5});(\d{1,5})([Mm])/g
/** The beginning of a report that is still incomplete. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape is how it begins
const BEGINNING = /\u001b(\[(<[\d;]{0,17})?)?$/
/** Shift, Alt and Control, which the user may hold. */
const MODIFIERS = 4 | 8 | 16
const LEFT_BUTTON = 0
const WHEEL_UP = 64
const WHEEL_DOWN = 65

/** Finds the complete reports in terminal input, and the beginning of an incomplete one. */
export function readMouseReports(text: string): {
  readonly reports: readonly MouseReport[]
  readonly rest: string
} {
  const reports = [...text.matchAll(REPORT)].flatMap(([, code, column, row, end]): MouseReport[] => {
    if (end === 'm') return []
    const button = Number(code) & ~MODIFIERS
    if (button === LEFT_BUTTON) return [{ kind: 'click', column: Number(column) - 1, row: Number(row) - 1 }]
    if (button === WHEEL_UP) return [{ kind: 'wheel', direction: 'up' }]
    return button === WHEEL_DOWN ? [{ kind: 'wheel', direction: 'down' }] : []
  })
  return { reports, rest: BEGINNING.exec(text)?.[0] ?? '' }
}
