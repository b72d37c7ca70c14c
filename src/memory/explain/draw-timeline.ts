/** The content of the picture: bytes per event without and with a plan, and the start of each event. */
interface TimelineDrawing {
  readonly title: string
  readonly unplannedBytes: readonly number[]
  readonly plannedBytes: readonly number[]
  /** Start of every event of the planned step in microseconds, and one more entry for the end. */
  readonly startUs: readonly number[]
  readonly budgetBytes: number
  /** Index of the first backward event. */
  readonly forwardCount: number
  /** Copies, drawn as bars under the curves. */
  readonly copies: readonly {
    readonly direction: 'out' | 'in'
    readonly fromUs: number
    readonly toUs: number
    readonly label: string
  }[]
}

const WIDTH = 1000
const HEIGHT = 420
const LEFT = 90
const RIGHT = 20
const TOP = 50
const CURVES = 250
const LANE = 34

/** Draws device memory over one step, planned and unplanned, as a standalone SVG. Deterministic. */
export function drawTimeline(drawing: TimelineDrawing): string {
  const { startUs, unplannedBytes, plannedBytes, budgetBytes } = drawing
  const endUs = startUs.at(-1)! || 1
  const topBytes = 1.05 * Math.max(budgetBytes < 1e15 ? budgetBytes : 0, ...unplannedBytes, ...plannedBytes)
  const x = (timeUs: number) => (LEFT + ((WIDTH - LEFT - RIGHT) * timeUs) / endUs).toFixed(1)
  const y = (bytes: number) => (TOP + CURVES * (1 - bytes / topBytes)).toFixed(1)
  const area = (bytes: readonly number[]) => {
    const points = bytes.flatMap((value, event) => [
      `${x(startUs[event]!)},${y(value)}`,
      `${x(startUs[event + 1]!)},${y(value)}`,
    ])
    return `M${x(0)},${y(0)} L${points.join(' L')} L${x(endUs)},${y(0)} Z`
  }
  const ticks = roundSteps(topBytes).map((bytes) => {
    return [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(bytes)}" y2="${y(bytes)}" stroke="#ddd"/>`,
      `<text x="${LEFT - 8}" y="${y(bytes)}" text-anchor="end" dy="4">${bytes === 0 ? '0' : gibibytes(bytes)}</text>`,
    ].join('')
  })
  const turnX = x(startUs[drawing.forwardCount]!)
  const lanes = (['out', 'in'] as const).map((direction, lane) => {
    const laneTop = TOP + CURVES + 34 + lane * LANE
    const color = direction === 'out' ? '#b45309' : '#0369a1'
    const bars = drawing.copies
      .filter((copy) => copy.direction === direction)
      .map(({ fromUs, toUs, label }) => {
        const left = Number(x(fromUs))
        const width = Math.max(0.5, Number(x(Math.min(toUs, endUs))) - left)
        return `<rect x="${left}" y="${laneTop}" width="${width.toFixed(1)}" height="18" fill="${color}" fill-opacity="0.45" stroke="#fff" stroke-width="0.4"><title>${escapeXml(label)}</title></rect>`
      })
    const text = direction === 'out' ? 'to host' : 'to device'
    return `<text x="${LEFT - 8}" y="${laneTop + 13}" text-anchor="end">${text}</text>${bars.join('')}`
  })
  const unplannedPeak = gibibytes(Math.max(...unplannedBytes))
  const plannedPeak = gibibytes(Math.max(...plannedBytes))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="20" font-size="15" font-weight="bold">${escapeXml(drawing.title)}</text>`,
    `<text x="${LEFT}" y="38"><tspan fill="#888">■ without a plan: peak ${unplannedPeak}</tspan><tspan dx="16" fill="#15803d">■ planned: peak ${plannedPeak}</tspan><tspan dx="16" fill="#b91c1c">– budget ${gibibytes(budgetBytes)}</tspan></text>`,
    ...ticks,
    `<path d="${area(unplannedBytes)}" fill="#999" fill-opacity="0.35"/>`,
    `<path d="${area(plannedBytes)}" fill="#15803d" fill-opacity="0.5"/>`,
    budgetBytes <= topBytes
      ? `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(budgetBytes)}" y2="${y(budgetBytes)}" stroke="#b91c1c" stroke-dasharray="6 4"/>`
      : '',
    `<line x1="${turnX}" x2="${turnX}" y1="${TOP}" y2="${TOP + CURVES}" stroke="#555" stroke-dasharray="2 3"/>`,
    `<text x="${LEFT}" y="${TOP + CURVES + 18}">forward</text>`,
    `<text x="${turnX}" y="${TOP + CURVES + 18}" dx="4">backward</text>`,
    `<text x="${WIDTH - RIGHT}" y="${TOP + CURVES + 18}" text-anchor="end">${(endUs / 1000).toFixed(2)} ms</text>`,
    ...lanes,
    '</svg>',
    '',
  ].join('\n')
}

/** Round numbers of bytes from 0 up to `topBytes`, four to eight of them. */
function roundSteps(topBytes: number): number[] {
  const unit = topBytes >= 2 ** 30 ? 2 ** 30 : 2 ** 20
  const rough = topBytes / unit / 8
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const step = unit * magnitude * ([1, 2, 5].find((factor) => factor * magnitude >= rough) ?? 10)
  return Array.from({ length: Math.floor(topBytes / step) + 1 }, (_, at) => at * step)
}

function gibibytes(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

function escapeXml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}
