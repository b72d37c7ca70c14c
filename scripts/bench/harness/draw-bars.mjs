// Horizontal bars as SVG.

const [WIDTH, LEFT, BAR, GAP] = [760, 230, 18, 8]
const ROOM = WIDTH - LEFT - 120

/** One group of bars below the other; each bar is [label, value, text, colour]. */
export function drawBars(groups) {
  const parts = []
  let y = 10
  for (const { title, bars } of groups) {
    parts.push(`<text x="10" y="${y + 16}" font-weight="bold">${escapeXml(title)}</text>`)
    y += 30
    const most = Math.max(...bars.map(([, value]) => value))
    for (const [label, value, text, colour] of bars) {
      const width = Math.max(1, (ROOM * value) / most)
      parts.push(
        `<text x="${LEFT - 8}" y="${y + 14}" text-anchor="end">${escapeXml(label)}</text>`,
        `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${colour}"/>`,
        `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 14}">${escapeXml(text)}</text>`,
      )
      y += BAR + GAP
    }
    y += 14
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>${parts.join('')}</svg>\n`
}

function escapeXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
