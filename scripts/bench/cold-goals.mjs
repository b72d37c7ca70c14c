// Which goals the rows of dsc in the tables of cold.mjs meet.

const FIRST_SECONDS = 1.5
const TIMES_SOONER = 5
const TIMES_LIMIT = 1.1
/** Headers of shards come on top of the shards. */
const COPIES = 1.01
/** Those that are judged; the others are judged by them. */
const OWN = ['arriving', 'unproven', 'listed']

/** A Markdown table: what each row of dsc comes to, and whether that is enough. `nameOf(table)` is a dataset's, `NAMES[loader]` a loader's. */
export function goalsTable(tables, { nameOf, NAMES }) {
  const lines = tables.flatMap((table) =>
    table.rows
      .filter(({ loader, unfinished }) => OWN.includes(loader) && unfinished === undefined)
      .map(
        (row) => `| ${[nameOf(table), table.step, NAMES[row.loader], ...judge(row, table)].join(' | ')} |`,
      ),
  )
  if (lines.length === 0) return '\n'
  return `
| dataset | step | loader | first batch | than staged first | epoch 1, × limit | copies | epoch 1, next loader's | both, next loader's |
|---|--:|---|--:|--:|--:|--:|--:|--:|
${lines.join('\n')}
`
}

function judge({ first, epochs, copies }, { rows, limit }) {
  const staged = rows.find(({ loader }) => loader === 'staged')
  const others = rows.filter(({ loader }) => loader !== 'staged' && !OWN.includes(loader))
  const sum = ([one, two]) => one + two
  return [
    say(`${first.toFixed(2)} s`, first <= FIRST_SECONDS),
    staged === undefined
      ? '–'
      : say(`${(staged.first / first).toFixed(1)} × sooner`, staged.first >= TIMES_SOONER * first),
    say((epochs[0] / limit).toFixed(2), epochs[0] <= TIMES_LIMIT * limit),
    say(copies.toFixed(3), copies <= COPIES),
    sayAhead(epochs[0], others, ([one]) => one),
    sayAhead(sum(epochs), others, sum),
  ]
}

/** How many times as long the quickest of the others takes. */
function sayAhead(seconds, others, read) {
  if (others.length === 0) return '–'
  const next = Math.min(...others.map(({ epochs }) => (epochs ? read(epochs) : Number.POSITIVE_INFINITY)))
  return Number.isFinite(next) ? say(`${(next / seconds).toFixed(2)} ×`, next > seconds) : 'none ended'
}

function say(figure, isMet) {
  return isMet ? figure : `**${figure}, missed**`
}
