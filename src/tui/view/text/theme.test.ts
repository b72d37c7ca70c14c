import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseTheme, lookOf, PAINTED_THEMES, type Theme } from './theme.js'

/** Red, green and blue of a palette colour, 0 to 255, as in xterm. */
function findRgb(number: number): readonly number[] {
  assert.ok(number >= 16 && number <= 255, 'terminals give the first sixteen colours of their own')
  if (number >= 232) return [0, 1, 2].map(() => 8 + 10 * (number - 232))
  const at = number - 16
  return [Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((step) =>
    step === 0 ? 0 : 55 + 40 * step,
  )
}

/** The relative luminance of WCAG 2.2. */
function findLuminance(number: number): number {
  const [red = 0, green = 0, blue = 0] = findRgb(number).map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function findContrast(a: number, b: number): number {
  const [dark = 0, light = 0] = [findLuminance(a), findLuminance(b)].toSorted((x, y) => x - y)
  return (light + 0.05) / (dark + 0.05)
}

const NEEDED = { dark: 4.5, light: 4.5, contrast: 7 } as const

test('black on white has the ratio of WCAG', () => assert.equal(findContrast(16, 231), 21))

for (const [name, theme] of Object.entries<Theme>(PAINTED_THEMES)) {
  const needed = NEEDED[name as keyof typeof NEEDED]
  for (const [role, ink] of Object.entries({ text: theme.text, dim: theme.dim, ...theme.colours }))
    test(`${role} of the theme ${name} has a contrast of ${needed} at least, under the cursor too`, () => {
      for (const ground of [theme.background, theme.chosen]) {
        const ratio = findContrast(ink, ground)
        assert.ok(ratio >= needed, `${ratio.toFixed(2)} on ${ground}`)
      }
    })
}

test('a painted theme dims by a colour of its own, the terminal by its attribute', () => {
  const span = { text: 'x', isDim: true }
  assert.deepEqual(lookOf(span, 'terminal'), { bold: false, inverse: false, dimColor: true })
  assert.deepEqual(lookOf(span, 'light'), {
    bold: false,
    inverse: false,
    dimColor: false,
    color: 'ansi256(240)',
    backgroundColor: 'ansi256(231)',
  })
})

test('the row under the cursor keeps the colour of its state', () => {
  const span = { text: 'x', color: 'green', isChosen: true } as const
  assert.deepEqual(lookOf(span, 'terminal'), { bold: false, inverse: true, dimColor: false, color: 'green' })
  assert.equal(lookOf(span, 'dark').color, lookOf({ ...span, isChosen: false }, 'dark').color)
  assert.equal(lookOf(span, 'dark').backgroundColor, 'ansi256(236)')
})

test('without colours a span keeps what is no colour', () => {
  const span = { text: 'x', color: 'red', isBold: true, isInverse: true } as const
  assert.deepEqual(lookOf(span, undefined), { bold: true, inverse: true, dimColor: false })
})

for (const [value, expected] of [
  [undefined, 'terminal'],
  ['15;0', 'terminal'],
  ['0;15', 'light'],
  ['0;default;15', 'light'],
] as const) {
  test(`COLORFGBG=${value} opens in the theme ${expected}`, () =>
    assert.equal(chooseTheme({ COLORFGBG: value }), expected))
}
