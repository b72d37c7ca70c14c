import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { WaitStatus } from '../../../cache/status/list-waits.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatSpan } from '../text/format-cells.js'
import { span } from '../text/styled-line.js'
import { type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const SORT_VALUES: SortValues<WaitStatus> = {
  WAITS: ({ task }) => task,
  FOR: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  SINCE: ({ sinceMs }) => -sinceMs,
  BECAUSE: ({ reason }) => reason,
}

function planColumns({ waits }: StatusSnapshot): readonly ColumnSpec[] {
  const width = (of: (wait: WaitStatus) => string, most: number) => widthOf(waits.values().map(of), 5, most)
  const task = width((wait) => wait.task, 40)
  const dataset = width((wait) => wait.dataset, 60)
  return [
    { title: 'WAITS', width: task, minWidth: Math.min(task, 9) },
    { title: 'FOR', width: dataset, minWidth: Math.min(dataset, 12) },
    { title: 'NODE', width: width((wait) => wait.node, 24), dropOrder: 2 },
    { title: 'SINCE', width: 5, align: 'right' },
    { title: 'BECAUSE', width: 30, minWidth: 12, grow: 1, dropOrder: 1 },
  ]
}

/** Tasks that wait for their dataset, the longest wait first. */
export function listWaitRows(snapshot: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const found = snapshot.waits.filter(({ task, dataset, node, reason }) =>
    matchesFilter(filter, [task, dataset, node, reason]),
  )
  const waits = sortRows(found, sort, SORT_VALUES)
  return {
    tab: 'waits',
    columns: planColumns(snapshot),
    sortable: Object.keys(SORT_VALUES),
    keys: waits.map(({ kind, task, dataset, node }) => `${kind} ${task} ${dataset} ${node}`),
    total: snapshot.waits.length,
    copyIdAt: (index) => {
      const wait = waits[index]
      const { transfers } = snapshot
      return transfers.find(({ dataset, node }) => dataset === wait?.dataset && node === wait.node)?.copyId
    },
    drawAt: (index, _widths, { nowMs }) => {
      const { task, dataset, node, kind, sinceMs, reason } = waits[index]!
      const color = kind === 'room' ? 'red' : 'yellow'
      return [
        span(task),
        span(dataset),
        span(node),
        span(formatSpan(nowMs - sinceMs), { color }),
        span(reason.replaceAll(/\s*\n\s*/g, '; ')),
      ]
    },
    emptyText: filter === '' ? 'No jobs are waiting' : 'No wait matches the filter',
  }
}
