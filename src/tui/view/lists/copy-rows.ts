import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import { findEvictionTurn } from '../../../cache/status/explain-copy.js'
import { findRate } from '../../../cache/status/transfer-rates.js'
import { formatByteSize } from '../../../model/byte-size.js'
import { type CopyUse, formatStripe } from '../../../model/copy.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatSpan } from '../text/format-cells.js'
import { type Span, span } from '../text/styled-line.js'
import { CONDITIONS, drawCondition, drawRate, findCondition } from './copy-state.js'
import {
  type Cell,
  type DrawContext,
  type ListChoice,
  type ListRows,
  matchesFilter,
  widthOf,
} from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const sortValues = ({ throughput }: ListChoice): SortValues<CopyUse> => ({
  SIZE: ({ chargedBytes }) => chargedBytes,
  USED: ({ lastUsedAtMs }) => lastUsedAtMs,
  DATASET: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  STATE: ({ referenceCount }) => referenceCount,
  'LAST TASK': ({ lastTask }) => lastTask ?? '',
  RATE: ({ copyId }) => findRate(throughput.progress, copyId) ?? -1,
  FILES: ({ files }) => files,
  VERSION: ({ version }) => version ?? '',
  STRIPE: ({ stripe }) => stripe?.index ?? -1,
})

/** Cells of a state with a bar, and without. */
const STATE_CELLS = 24
const LEAST_STATE_CELLS = 21

function planColumns(snapshot: StatusSnapshot): readonly ColumnSpec[] {
  const name = widthOf(snapshot.copies, ({ dataset }) => dataset, [7, 60])
  const node = widthOf(snapshot.copies, (copy) => copy.node, [4, 24])
  const hasStripes = snapshot.copies.some(({ stripe }) => stripe !== undefined)
  return [
    { title: 'DATASET', width: name, minWidth: Math.min(name, 22), grow: 1 },
    { title: 'NODE', width: node, minWidth: Math.min(node, 10), dropOrder: 3 },
    { title: 'STATE', width: STATE_CELLS, minWidth: LEAST_STATE_CELLS, grow: 1 },
    ...(hasStripes ? [{ title: 'STRIPE', width: 7, align: 'right' } as const] : []),
    { title: 'SIZE', width: 8, align: 'right', dropOrder: 1 },
    { title: 'USED', width: 4, align: 'right', dropOrder: 2 },
    { title: 'LAST TASK', width: 16, minWidth: 8, grow: 1, dropOrder: 4 },
    { title: 'RATE', width: 10, align: 'right', dropOrder: 5 },
    { title: 'FILES', width: 11, align: 'right', dropOrder: 7 },
    { title: 'VERSION', width: 12, dropOrder: 6 },
  ]
}

/** Copies that match the filter: those under way and in use first, idle ones last. */
export function listCopyRows(snapshot: StatusSnapshot, choice: ListChoice): ListRows {
  const { filter, sort } = choice
  const found =
    filter === ''
      ? snapshot.copies
      : snapshot.copies.filter((copy) =>
          matchesFilter(filter, [
            copy.dataset,
            copy.node,
            copy.state,
            copy.lastTask,
            copy.version,
            wordsOf(copy),
          ]),
        )
  const values = sortValues(choice)
  const copies = sort ? sortRows(found, sort, values) : gatherByCondition(found)
  const hasStripes = snapshot.copies.some(({ stripe }) => stripe !== undefined)
  const broken = new Set(
    snapshot.layouts
      .filter(({ isComplete }) => !isComplete)
      .flatMap(({ stripes }) => stripes.map(({ copyId }) => copyId)),
  )
  return {
    list: 'copies',
    columns: planColumns(snapshot),
    sortable: Object.keys(values),
    keys: copies.map((copy) => copy.copyId),
    total: snapshot.copies.length,
    copyIdAt: (index) => copies[index]?.copyId,
    copyAt: (index) => copies[index],
    drawAt: (index, widths, context) => {
      const copy = copies[index]!
      const { dataset, node, lastTask } = copy
      const isIdle = findCondition(copy) === 'idle'
      return [
        span(dataset, isIdle ? { isDim: true } : { isBold: copy.referenceCount > 0 }),
        span(node, isIdle ? { isDim: true } : {}),
        drawStateOf(copy, snapshot, widths[2] ?? STATE_CELLS, context),
        ...(hasStripes ? [drawStripe(copy, broken)] : []),
        span(copy.state === 'reserved' ? '-' : formatByteSize(copy.chargedBytes)),
        span(formatSpan(context.nowMs - copy.lastUsedAtMs)),
        span(lastTask ?? '-', lastTask === null ? { isDim: true } : {}),
        drawRate(copy.copyId, copy.state === 'staging' && copy.isBeingStaged, context),
        span(copy.state === 'reserved' ? '-' : copy.files.toLocaleString('en-US')),
        span(copy.version?.slice(0, 12) ?? '-', { isDim: true }),
      ]
    },
    emptyText: filter === '' ? 'No copies yet: p prepares a dataset' : 'No copy matches the filter',
  }
}

/** The words that a filter finds beside the names: a locked copy in use is both. */
function wordsOf(copy: CopyUse): string {
  return [findCondition(copy), copy.referenceCount > 0 ? 'in use' : '', copy.lock?.by ?? ''].join(' ')
}

function gatherByCondition(copies: readonly CopyUse[]): readonly CopyUse[] {
  const byCondition = Map.groupBy(copies, findCondition)
  return CONDITIONS.flatMap((condition) => byCondition.get(condition) ?? [])
}

function drawStateOf(
  copy: CopyUse,
  { copies, transfers }: StatusSnapshot,
  width: number,
  context: DrawContext,
): Cell {
  const transfer = copy.state === 'ready' ? undefined : transfers.find(({ copyId }) => copyId === copy.copyId)
  const turn = findCondition(copy) === 'idle' ? findEvictionTurn(copy, copies) : undefined
  return drawCondition(copy, { transfer, turn }, width, context)
}

/** `2/3`, in the warning colour if another stripe of it is missing. */
function drawStripe(copy: CopyUse, broken: ReadonlySet<string | null>): Span {
  if (!copy.stripe) return span('-', { isDim: true })
  return span(formatStripe(copy.stripe), broken.has(copy.copyId) ? { color: 'yellow' } : {})
}
