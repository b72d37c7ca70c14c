import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import { findKeepers } from '../../../cache/status/explain-copy.js'
import { formatByteSize } from '../../../model/byte-size.js'
import { type CopyUse, formatStripe } from '../../../model/copy.js'
import { formatCount } from '../../../model/format-count.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatPercent, formatSpan } from '../text/format-cells.js'
import { type Span, span } from '../text/styled-line.js'
import { type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const SORT_VALUES: SortValues<CopyUse> = {
  SIZE: ({ chargedBytes }) => chargedBytes,
  USED: ({ lastUsedAtMs }) => lastUsedAtMs,
  'KEPT BY': ({ referenceCount, lock }) => referenceCount + (lock ? 0.5 : 0),
  DATASET: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  STATE: ({ state }) => state,
  'LAST TASK': ({ lastTask }) => lastTask ?? '',
  FILES: ({ files }) => files,
  VERSION: ({ version }) => version ?? '',
  STRIPE: ({ stripe }) => stripe?.index ?? -1,
}

function planColumns(snapshot: StatusSnapshot): readonly ColumnSpec[] {
  const name = widthOf(names(snapshot.copies, 'dataset'), 7, 60)
  const node = widthOf(names(snapshot.copies, 'node'), 4, 24)
  const hasStripes = snapshot.copies.some(({ stripe }) => stripe !== undefined)
  return [
    { title: 'DATASET', width: name, minWidth: Math.min(name, 24), grow: 1 },
    { title: 'NODE', width: node, minWidth: Math.min(node, 10), dropOrder: 3 },
    { title: 'STATE', width: 11 },
    ...(hasStripes ? [{ title: 'STRIPE', width: 7, align: 'right' } as const] : []),
    { title: 'SIZE', width: 8, align: 'right', dropOrder: 1 },
    { title: 'KEPT BY', width: 9 },
    { title: 'USED', width: 4, align: 'right', dropOrder: 2 },
    { title: 'LAST TASK', width: 16, minWidth: 8, grow: 1, dropOrder: 4 },
    { title: 'FILES', width: 11, align: 'right', dropOrder: 6 },
    { title: 'VERSION', width: 12, dropOrder: 5 },
  ]
}

function* names<Key extends string>(
  items: readonly Readonly<Record<Key, string>>[],
  key: Key,
): Iterable<string> {
  for (const item of items) yield item[key]
}

/** Copies that match the filter, in the given order. */
export function listCopyRows(snapshot: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
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
            copy.lock ? 'locked' : null,
          ]),
        )
  const copies = sortRows(found, sort, SORT_VALUES)
  const hasStripes = snapshot.copies.some(({ stripe }) => stripe !== undefined)
  const broken = new Set(
    snapshot.layouts
      .filter(({ isComplete }) => !isComplete)
      .flatMap(({ stripes }) => stripes.map(({ copyId }) => copyId)),
  )
  return {
    tab: 'copies',
    columns: planColumns(snapshot),
    sortable: Object.keys(SORT_VALUES),
    keys: copies.map((copy) => copy.copyId),
    total: snapshot.copies.length,
    copyIdAt: (index) => copies[index]?.copyId,
    copyAt: (index) => copies[index],
    drawAt: (index, _widths, context) => {
      const copy = copies[index]!
      return [
        span(copy.dataset, { isBold: copy.referenceCount > 0 }),
        span(copy.node),
        drawState(copy),
        ...(hasStripes ? [drawStripe(copy, broken)] : []),
        span(copy.state === 'reserved' ? '-' : formatByteSize(copy.chargedBytes)),
        drawKeepers(copy),
        span(formatSpan(context.nowMs - copy.lastUsedAtMs)),
        span(copy.lastTask ?? '-', copy.lastTask === null ? { isDim: true } : {}),
        span(copy.state === 'reserved' ? '-' : copy.files.toLocaleString('en-US')),
        span(copy.version?.slice(0, 12) ?? '-', { isDim: true }),
      ]
    },
    emptyText: filter === '' ? 'No copies yet: p prepares a dataset' : 'No copy matches the filter',
  }
}

/** `ready`, `staging 43%`, …, in the colour of the state. */
export function drawState(copy: CopyUse): Span {
  switch (copy.state) {
    case 'ready':
      return span('ready', { color: 'green' })
    case 'reserved':
      return span('listing', { color: 'cyan' })
    case 'staging': {
      const percent = formatPercent(copy.writtenBytes, copy.contentBytes)
      return copy.isBeingStaged
        ? span(`staging ${percent}`, { color: 'cyan' })
        : span(`left at ${percent}`, { color: 'yellow' })
    }
    case 'evicting':
      return span('evicting', { color: 'yellow' })
  }
}

/** `2/3`, in the warning colour if another stripe of it is missing. */
function drawStripe(copy: CopyUse, broken: ReadonlySet<string | null>): Span {
  if (!copy.stripe) return span('-', { isDim: true })
  return span(formatStripe(copy.stripe), broken.has(copy.copyId) ? { color: 'yellow' } : {})
}

/** The keepers of a copy, in short: `2 leases`, `lock`, `lock +2`; `idle`: it may be evicted. */
export function drawKeepers(copy: CopyUse): Span {
  const keepers = findKeepers(copy)
  const isLocked = keepers.includes('lock')
  if (copy.referenceCount > 0) {
    return isLocked
      ? span(`lock +${copy.referenceCount.toLocaleString('en-US')}`, { color: 'yellow' })
      : span(formatCount(copy.referenceCount, 'lease'), { color: 'green' })
  }
  if (isLocked) return span('lock', { color: 'yellow' })
  if (keepers.includes('no source')) return span('no source', { color: 'yellow' })
  if (keepers.includes('stager')) return span('stager', { color: 'cyan' })
  return span('idle', { isDim: true })
}
