// Draws what `tmux capture-pane -e` prints as an SVG that follows the reader's light or dark theme.

const CELL = { width: 8.4, height: 18, baseline: 13.5 }
const MARGIN = 14

/** SGR codes by the class of the style sheet that draws them. */
// biome-ignore format: a table
const COLORS = {
  30: 'k', 31: 'r', 32: 'g', 33: 'y', 34: 'b', 35: 'm', 36: 'c', 37: 'w',
  90: 'd', 91: 'r', 92: 'g', 93: 'y', 94: 'b', 95: 'm', 96: 'c', 97: 'w',
}
const STYLE = `
svg { --back: #fff; --fore: #1f2328; --k: #1f2328; --r: #cf222e; --g: #1a7f37; --y: #9a6700; --b: #0969da; --m: #8250df; --c: #1b7c83; --w: #59636e; --d: #6e7781; --edge: #d1d9e0 }
@media (prefers-color-scheme: dark) {
svg { --back: #0d1117; --fore: #e6edf3; --k: #7d8590; --r: #ff7b72; --g: #3fb950; --y: #d29922; --b: #58a6ff; --m: #bc8cff; --c: #39c5cf; --w: #c9d1d9; --d: #7d8590; --edge: #3d444d }
}
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: var(--fore) }
.bold { font-weight: 600 } .dim { opacity: .65 }
.back { fill: var(--back); stroke: var(--edge) } .bar { fill: var(--fore) } .inverse { fill: var(--back) }
${[...new Set(Object.values(COLORS))].map((name) => `.${name} { fill: var(--${name}) }`).join(' ')}
`

/** One SVG of `screen`, whose rows are at most `columns` wide; `title` is read to those who cannot see it. */
export function drawTerminal(screen, columns, title) {
  const rows = screen.replace(/\s+$/, '').split('\n')
  const look = { classes: new Set(), isInverse: false }
  const drawn = rows.flatMap((row, index) => drawRow(row, MARGIN + index * CELL.height, look))
  return frame({ columns, rows: rows.length, title }, STYLE, drawn)
}

/**
 * An SVG that plays `frames` again and again: `screen`, and how many milliseconds it is shown. Each different row is drawn
 * once and used by all frames that have it. Who wants no motion sees the last frame.
 */
export function drawRecording(frames, { columns, rows, title }) {
  const ids = new Map()
  const totalMs = frames.reduce((sum, { ms }) => sum + ms, 0)
  const percent = (ms) => `${round((100 * ms) / totalMs)}%`
  const rules = []
  let startMs = 0
  const groups = frames.map(({ screen, ms }, at) => {
    const look = { classes: new Set(), isInverse: false }
    const uses = screen
      .split('\n')
      .slice(0, rows)
      .flatMap((row, index) => {
        const drawn = drawRow(row, 0, look).join('')
        if (drawn === '') return []
        if (!ids.has(drawn)) ids.set(drawn, `r${ids.size}`)
        return [`<use href="#${ids.get(drawn)}" y="${MARGIN + index * CELL.height}"/>`]
      })
    const [from, to] = [percent(startMs), percent(startMs + ms)]
    const before = startMs === 0 ? '' : '0%{visibility:hidden}'
    rules.push(`@keyframes f${at}{${before}${from}{visibility:visible}${to}{visibility:hidden}}`)
    rules.push(`.f${at}{animation:f${at} ${totalMs}ms step-end infinite;visibility:hidden}`)
    startMs += ms
    return `<g class="f${at}">${uses.join('')}</g>`
  })
  rules.push(
    `@media (prefers-reduced-motion){g{animation:none!important}.f${frames.length - 1}{visibility:visible}}`,
  )
  const defs = [...ids].map(([drawn, id]) => `<g id="${id}">${drawn}</g>`)
  return frame({ columns, rows, title }, `${STYLE}${rules.join('\n')}\n`, [
    '<defs>',
    ...defs,
    '</defs>',
    ...groups,
  ])
}

function frame({ columns, rows, title }, style, drawn) {
  const width = columns * CELL.width + 2 * MARGIN
  const height = rows * CELL.height + 2 * MARGIN
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${round(height)}" role="img" aria-label="${escapeXml(title)}">`,
    `<style>${style}</style>`,
    `<rect class="back" x="0.5" y="0.5" width="${round(width - 1)}" height="${round(height - 1)}" rx="8"/>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n')
}

/** Every word is a text of its own, stretched to its cells: fonts differ in the width of bars and lines. */
function drawRow(row, top, look) {
  const drawn = []
  let column = 0
  const at = (cells) => round(MARGIN + cells * CELL.width)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that begins an SGR sequence
  for (const [, codes, text] of row.matchAll(/\x1b\[([\d;]*)m|([^\x1b]+)/g)) {
    if (codes !== undefined) {
      for (const code of codes.split(';')) applyCode(look, Number(code))
      continue
    }
    // Inverse, the colour of the text is that of its ground.
    const ground = [...look.classes].filter((name) => Object.values(COLORS).includes(name))
    if (look.isInverse)
      drawn.push(
        `<rect class="${['bar', ...ground].join(' ')}" x="${at(column)}" y="${round(top)}" width="${round(text.length * CELL.width)}" height="${CELL.height}"/>`,
      )
    const own = look.isInverse
      ? [...look.classes].filter((name) => !ground.includes(name))
      : [...look.classes]
    const classes = [...own, ...(look.isInverse ? ['inverse'] : [])].join(' ')
    for (const { 0: word, index } of text.matchAll(/\S+/g))
      drawn.push(
        `<text${classes && ` class="${classes}"`} x="${at(column + index)}" y="${round(top + CELL.baseline)}" textLength="${round(word.length * CELL.width)}" lengthAdjust="spacingAndGlyphs">${escapeXml(word)}</text>`,
      )
    column += text.length
  }
  return drawn
}

function applyCode(look, code) {
  const { classes } = look
  const dropColor = () => {
    for (const name of Object.values(COLORS)) classes.delete(name)
  }
  if (code === 0) {
    classes.clear()
    look.isInverse = false
  } else if (code === 1) classes.add('bold')
  else if (code === 2) classes.add('dim')
  else if (code === 22) for (const name of ['bold', 'dim']) classes.delete(name)
  else if (code === 7 || code === 27) look.isInverse = code === 7
  else if (code === 39) dropColor()
  else if (COLORS[code]) {
    dropColor()
    classes.add(COLORS[code])
  }
}

function round(value) {
  return Math.round(value * 10) / 10
}

function escapeXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
