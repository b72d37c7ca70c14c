import type { Colour, Span } from './styled-line.js'

/** The available looks of the live screen. */
export const THEMES = ['terminal', 'dark', 'light', 'contrast'] as const
/** A theme; `terminal` leaves the background and the sixteen colours to the terminal. */
export type ThemeName = (typeof THEMES)[number]

/**
 * Colours by their numbers in the palette of 256. Those from 16 on look the same everywhere, unlike the first sixteen,
 * so the contrast of a text with its painted background is known (theme.test.ts).
 */
export interface Theme {
  readonly background: number
  /** The ground of the row under the cursor. */
  readonly chosen: number
  readonly text: number
  /** For less important text. */
  readonly dim: number
  readonly colours: Readonly<Record<Colour, number>>
}

/** The themes that paint their own background. */
export const PAINTED_THEMES: Readonly<Record<Exclude<ThemeName, 'terminal'>, Theme>> = {
  dark: {
    background: 234,
    chosen: 236,
    text: 252,
    dim: 247,
    colours: { green: 114, yellow: 221, red: 210, cyan: 80, blue: 111, magenta: 176 },
  },
  light: {
    background: 231,
    chosen: 254,
    text: 235,
    dim: 240,
    colours: { green: 22, yellow: 94, red: 124, cyan: 24, blue: 19, magenta: 90 },
  },
  contrast: {
    background: 16,
    chosen: 234,
    text: 231,
    dim: 252,
    colours: { green: 46, yellow: 226, red: 217, cyan: 51, blue: 117, magenta: 213 },
  },
}

/** How a terminal should draw a span. */
interface Look {
  readonly bold: boolean
  readonly dimColor: boolean
  readonly inverse: boolean
  readonly color?: string
  readonly backgroundColor?: string
}

/**
 * The look of a span in a theme; without a theme there are no colours, only bold, dim and inverse. The grounds of a
 * terminal's own colours are unknown, so it shows the row under the cursor inverse, in the colour of each state.
 */
export function lookOf(part: Span, theme: ThemeName | undefined): Look {
  const { color, isBold = false, isDim = false, isInverse = false, isChosen = false } = part
  if (theme === undefined || theme === 'terminal') {
    const inverse = isInverse || isChosen
    return { bold: isBold, inverse, dimColor: isDim && !isChosen, ...(theme && color ? { color } : {}) }
  }
  const { background, chosen, text, dim, colours } = PAINTED_THEMES[theme]
  const ink = color ? colours[color] : isDim ? dim : text
  const ground = isChosen ? chosen : background
  return {
    bold: isBold,
    inverse: isInverse,
    dimColor: false,
    color: `ansi256(${ink})`,
    backgroundColor: `ansi256(${ground})`,
  }
}

/** The theme for a terminal that reports its background brightness (`COLORFGBG=0;15`); else its own colours. */
export function chooseTheme(environment: Readonly<Record<string, string | undefined>>): ThemeName {
  const background = environment.COLORFGBG?.split(';').at(-1)
  return background === '7' || background === '15' ? 'light' : 'terminal'
}
