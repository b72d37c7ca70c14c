import { STATUS_EVENTS } from '../../cache/status/compose-status.js'
import { readCopyPages, readDatasetCopies } from '../../cache/status/copy-pages.js'
import { listHoldings } from '../../cache/status/list-holdings.js'
import { describeCopy, describeStatus } from '../../cache/status/status-json.js'
import type { StatusFilter } from '../../cache/status/status-snapshot.js'
import type { StatusSummary } from '../../cache/status/summarize-status.js'
import type { RecordStore } from '../../records/record-store.js'
import { copyColumns } from './copy-columns.js'
import { copyCells, formatAfterCopies, formatNodes, holdingCells, NO_COPIES } from './status-table.js'
import { TableShape } from './text-table.js'

/** What a status is written from: few numbers at once, copies page by page. */
interface StatusSupply {
  readonly record: RecordStore
  readonly filter: StatusFilter
  readonly summary: StatusSummary
}

/** What the text is written from: the same, as far as it is needed. */
interface TextSupply {
  readonly record: Pick<RecordStore, 'listCopies'>
  readonly filter: StatusFilter
  readonly summary: Pick<StatusSummary, 'takenAtMs' | 'nodes' | 'layouts' | 'transfers'>
}

/** `dsc status --json` in pieces: what `describeStatus` says, in the memory of one page of copies. */
export async function* formatStatusJson(supply: StatusSupply): AsyncGenerator<string> {
  const { record, filter, summary } = supply
  const {
    copies: _,
    holdings: __,
    ...described
  } = describeStatus({
    ...summary,
    recordLocation: record.location,
    copies: [],
    leases: await record.listLeases(filter),
    events: await record.listEvents({ ...filter, limit: STATUS_EVENTS }),
  })
  const { takenAt, record: location, nodes, events, ...middle } = described
  yield `${JSON.stringify({ takenAt, record: location, nodes }).slice(0, -1)},"copies":[`
  yield* separate(readPages(supply), (copies) => JSON.stringify(copies.map(describeCopy)).slice(1, -1))
  yield `],${JSON.stringify(middle).slice(1, -1)},"holdings":[`
  yield* separate(readDatasetCopies(readPages(supply)), (copies) =>
    JSON.stringify(listHoldings(copies)).slice(1, -1),
  )
  yield `],"events":${JSON.stringify(events)}}\n`
}

/**
 * `dsc status` without a terminal of its own, in pieces: nodes, copies, who holds what, stripes and downloads, one
 * table each. The copies are read twice, the first time for the widths of the columns.
 */
export async function* formatStatusText(
  supply: TextSupply,
  totalWidth: number | undefined,
): AsyncGenerator<string> {
  const { summary } = supply
  const nowMs = summary.takenAtMs
  const holdings: (readonly string[])[] = []
  const [plain, striped] = [
    new TableShape(copyColumns({ hasStripes: false })),
    new TableShape(copyColumns({ hasStripes: true })),
  ]
  let hasStripes = false
  for await (const copies of readDatasetCopies(readPages(supply))) {
    holdings.push(...holdingCells(copies))
    for (const copy of copies) {
      hasStripes ||= copy.stripe !== undefined
      plain.measure(copyCells(copy, { hasStripes: false, nowMs }))
      striped.measure(copyCells(copy, { hasStripes: true, nowMs }))
    }
  }
  if (summary.nodes.length > 0) yield `${formatNodes(summary.nodes, nowMs, totalWidth)}\n\n`
  if (holdings.length === 0) yield `${NO_COPIES}\n`
  else {
    const shape = hasStripes ? striped : plain
    const formatRow = shape.place(totalWidth)
    yield `${formatRow(shape.titles)}\n`
    for await (const page of readPages(supply))
      yield page.map((copy) => `${formatRow(copyCells(copy, { hasStripes, nowMs }))}\n`).join('')
  }
  const after = formatAfterCopies(summary, holdings, totalWidth)
  if (after !== '') yield `\n${after}\n`
}

function readPages({ record, filter, summary }: TextSupply) {
  return readCopyPages(record, filter, { nowMs: summary.takenAtMs })
}

/** The elements of a list in JSON, in pieces. */
async function* separate<Page>(
  pages: AsyncIterable<Page>,
  format: (page: Page) => string,
): AsyncGenerator<string> {
  let separator = ''
  for await (const page of pages) {
    yield separator + format(page)
    separator = ','
  }
}
