import { describeLease } from '../../cache/leases/describe-lease.js'
import { STATUS_EVENTS } from '../../cache/status/compose-status.js'
import {
  describeCopy,
  describeEvent,
  describeLayout,
  describeNode,
  describeStatus,
  describeTransfer,
  describeWait,
} from '../../cache/status/describe-status.js'
import { listHoldings } from '../../cache/status/list-holdings.js'
import { readCopyPages, readDatasetCopies, readLeasePages } from '../../cache/status/record-pages.js'
import type { StatusFilter } from '../../cache/status/status-snapshot.js'
import type { StatusSummary } from '../../cache/status/summarize-status.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { formatElements, formatLines, separate } from './list-pieces.js'
import {
  copyColumns,
  formatAfterCopies,
  formatNodes,
  type HeldDataset,
  listHeld,
  NO_COPIES,
} from './status-table.js'
import { TableShape } from './text-table.js'

/** The source of a status: a few numbers at once, copies page by page. */
interface StatusSupply {
  readonly record: RecordStore
  readonly filter: StatusFilter
  readonly summary: StatusSummary
}

/** The source of the text: the same, as far as it is needed. */
interface TextSupply {
  readonly record: Pick<RecordStore, 'listCopies'>
  readonly filter: StatusFilter
  readonly summary: Pick<StatusSummary, 'takenAtMs' | 'nodes' | 'layouts' | 'transfers' | 'waits'>
}

/** `dsc status --json` in pieces: as `describeStatus`, in the memory of one page of copies and the holdings. */
export async function* formatStatusJson(supply: StatusSupply): AsyncGenerator<string> {
  const { record, filter, summary } = supply
  const empty = { recordLocation: record.location, copies: [], leases: [] }
  const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
  const described = describeStatus({ ...summary, ...empty, events })
  const { dsc, takenAt, record: location, nodes, layouts, transfers, waits } = described
  const holdings: string[] = []
  yield `${JSON.stringify({ dsc, takenAt, record: location, nodes }).slice(0, -1)},"copies":[`
  yield* separate(readDatasetCopies(readPages(supply)), (copies) => {
    holdings.push(JSON.stringify(listHoldings(copies)).slice(1, -1))
    return JSON.stringify(copies.map(describeCopy)).slice(1, -1)
  })
  yield `],"layouts":${JSON.stringify(layouts)},"leases":[`
  yield* separate(readLeasePages(record, filter), formatElements(describeLease))
  yield `],"transfers":${JSON.stringify(transfers)},"waits":${JSON.stringify(waits)},"holdings":[`
  yield* separate(holdings, (holding) => holding)
  yield `],"events":${JSON.stringify(described.events)}}\n`
}

/** `dsc status --ndjson` in pieces: one answer per line, whose `type` names its kind. */
export async function* formatStatusLines(supply: StatusSupply): AsyncGenerator<string> {
  const { record, filter, summary } = supply
  yield* formatLines([summary.nodes], (node) => ({ type: 'node', ...describeNode(node) }))
  yield* formatLines(readPages(supply), (copy) => ({ type: 'copy', ...describeCopy(copy) }))
  yield* formatLines([summary.layouts], (layout) => ({ type: 'layout', ...describeLayout(layout) }))
  yield* formatLines(readLeasePages(record, filter), (lease) => ({ type: 'lease', ...describeLease(lease) }))
  yield* formatLines([summary.transfers], (transfer) => ({ type: 'transfer', ...describeTransfer(transfer) }))
  yield* formatLines([summary.waits], (wait) => ({ type: 'wait', ...describeWait(wait) }))
  const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
  yield* formatLines([events], (event) => ({ type: 'event', ...describeEvent(event) }))
}

/**
 * `dsc status` outside its live screen, in pieces: nodes, copies, who holds what, stripes and downloads, one table
 * each. Reads the copies twice, the first time for the widths of the columns.
 */
export async function* formatStatusText(
  supply: TextSupply,
  totalWidth: number | undefined,
): AsyncGenerator<string> {
  const { summary } = supply
  const nowMs = summary.takenAtMs
  const holdings: HeldDataset[] = []
  const shape = new TableShape(copyColumns(nowMs))
  for await (const copies of readDatasetCopies(readPages(supply))) {
    holdings.push(...listHeld(copies))
    for (const copy of copies) shape.measure(copy)
  }
  if (summary.nodes.length > 0) yield `${formatNodes(summary.nodes, nowMs, totalWidth)}\n\n`
  if (holdings.length === 0) yield `${NO_COPIES}\n`
  else {
    const { titles, format } = shape.place(totalWidth)
    yield `${titles}\n`
    for await (const page of readPages(supply)) yield page.map((copy) => `${format(copy)}\n`).join('')
  }
  const after = formatAfterCopies(summary, holdings, totalWidth)
  if (after !== '') yield `\n${after}\n`
}

function readPages({ record, filter, summary }: TextSupply) {
  return readCopyPages(record, filter, { nowMs: summary.takenAtMs })
}
