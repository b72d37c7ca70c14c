// Tables of Markdown, and the figures in them.

/** The rows of a table below `heads`; all columns but the first `texts` are figures. */
export function table(heads, rows, { texts = 1 } = {}) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [
    line(heads),
    `|${heads.map((_, at) => (at < texts ? '---' : '--:')).join('|')}|`,
    ...rows.map(line),
    '',
  ]
}

export function median(numbers) {
  return quantile(numbers, 0.5)
}

/** The number that `share` of all are below. */
export function quantile(numbers, share) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** Median, and least to most of several. */
export function span(numbers, digits = 2) {
  const [middle, least, most] = [median(numbers), Math.min(...numbers), Math.max(...numbers)]
  const text = middle.toFixed(digits)
  return numbers.length > 1 ? `${text} (${least.toFixed(digits)}–${most.toFixed(digits)})` : text
}

export function count(number) {
  return Math.round(number).toLocaleString('en-US')
}

export function formatBytes(bytes) {
  const units = [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [1024, 'KiB'],
  ]
  const [size, unit] = units.find(([least]) => bytes >= least) ?? [1, 'bytes']
  return `${Number((bytes / size).toFixed(1))} ${unit}`
}

/** How many times each of the others one is, or a dash. */
export function ratio(one, other) {
  return one === undefined || other === undefined ? '–' : (one / other).toFixed(2)
}

/** Median, range and multiple of the first one's, for each. */
export function formatTimes(times, what = 'command', unit = 'ms') {
  const [base] = [...times.values()].map(median)
  const rows = [...times].map(([name, ms]) => {
    const range = `${Math.min(...ms).toFixed(0)} to ${Math.max(...ms).toFixed(0)}`
    return [name, median(ms).toFixed(1), range, (median(ms) / base).toFixed(2)]
  })
  return table([what, `median, ${unit}`, `fastest to slowest, ${unit}`, '× `node -e 0`'], rows)
}
