// The picture of cluster.md as SVG; for cluster.mjs.

const [WIDTH, LEFT, BAR, GAP] = [760, 190, 22, 10]
const ROOM = WIDTH - LEFT - 110

/** Two groups of horizontal bars: `bytes` and `latencies`, each a list of [label, value, text, colour]. */
export function drawBars(groups) {
  const parts = []
  let y = 10
  for (const { title, bars } of groups) {
    parts.push(`<text x="10" y="${y + 16}" font-weight="bold">${title}</text>`)
    y += 30
    const most = Math.max(...bars.map(([, value]) => value))
    for (const [label, value, text, colour] of bars) {
      const width = Math.max(1, (ROOM * value) / most)
      parts.push(
        `<text x="${LEFT - 8}" y="${y + 16}" text-anchor="end">${label}</text>`,
        `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${colour}"/>`,
        `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 16}">${text}</text>`,
      )
      y += BAR + GAP
    }
    y += 14
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>${parts.join('')}</svg>\n`
}
