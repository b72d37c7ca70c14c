import type { BudgetPoint } from '../memory-answer.js'

const WIDTH = 720
const HEIGHT = 360
const LEFT = 80
const RIGHT = 30
const TOP = 40
const BOTTOM = 60

/** Draws the predicted step over the budget as a standalone SVG and marks the plan's own budget. Deterministic. */
export function drawCurve(points: readonly BudgetPoint[], budgetBytes: number): string {
  const fitting = points.flatMap((point) =>
    point.stepMs === undefined ? [] : [{ ...point, stepMs: point.stepMs }],
  )
  const [first, last] = [points[0]!.budgetBytes, points.at(-1)!.budgetBytes]
  const topMs = 1.1 * Math.max(...fitting.map(({ stepMs }) => stepMs), 1e-3)
  const x = (bytes: number) =>
    (LEFT + ((WIDTH - LEFT - RIGHT) * (bytes - first)) / Math.max(1, last - first)).toFixed(1)
  const y = (ms: number) => (TOP + (HEIGHT - TOP - BOTTOM) * (1 - ms / topMs)).toFixed(1)
  const unit = last >= 2 ** 30 ? 2 ** 30 : 2 ** 20
  const label = (bytes: number) => `${(bytes / unit).toFixed(1)} ${unit === 2 ** 30 ? 'GiB' : 'MiB'}`
  const bottom = HEIGHT - BOTTOM
  const dots = points.map(({ budgetBytes: bytes, stepMs }) =>
    stepMs === undefined
      ? `<text x="${x(bytes)}" y="${bottom - 6}" text-anchor="middle" fill="#b91c1c">×<title>no plan fits ${label(bytes)}</title></text>`
      : `<circle cx="${x(bytes)}" cy="${y(stepMs)}" r="4" fill="${bytes === budgetBytes ? '#b91c1c' : '#0369a1'}"><title>${label(bytes)}: ${stepMs.toFixed(2)} ms</title></circle>`,
  )
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const bytes = first + share * (last - first)
    const ms = share * topMs
    return [
      `<text x="${x(bytes)}" y="${bottom + 20}" text-anchor="middle">${label(bytes)}</text>`,
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(ms)}" y2="${y(ms)}" stroke="#ddd"/>`,
      `<text x="${LEFT - 8}" y="${y(ms)}" text-anchor="end" dy="4">${ms.toFixed(1)} ms</text>`,
    ].join('')
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="22" font-size="15" font-weight="bold">predicted step over the budget (× = no plan fits)</text>`,
    ...ticks,
    `<polyline points="${fitting.map(({ budgetBytes: bytes, stepMs }) => `${x(bytes)},${y(stepMs)}`).join(' ')}" fill="none" stroke="#0369a1" stroke-width="2"/>`,
    ...dots,
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 12}" text-anchor="middle">budget of device memory; red: this plan</text>`,
    '</svg>',
    '',
  ].join('\n')
}
