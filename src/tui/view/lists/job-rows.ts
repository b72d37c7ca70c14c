import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import { formatNodeList } from '../../../model/format-node-list.js'
import type { PlacedLease } from '../../../model/lease.js'
import { formatSpan } from '../text/format-cells.js'
import { span } from '../text/styled-line.js'
import { type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

/** A job with all its leases. */
interface JobRow {
  readonly task: string
  readonly leases: number
  readonly datasets: readonly string[]
  readonly nodes: readonly string[]
  readonly sinceMs: number
}

const SORT_VALUES: SortValues<JobRow> = {
  TASK: ({ task }) => task,
  LEASES: ({ leases }) => leases,
  SINCE: ({ sinceMs }) => -sinceMs,
  ON: ({ nodes }) => nodes.length,
  DATASETS: ({ datasets }) => datasets.length,
}

/** Leases by the job that holds them. */
export function listJobRows({ leases }: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const all = [...Map.groupBy(leases, ({ task }) => task)].map(([task, own]) => sumUp(task, own))
  const found = all.filter(({ task, datasets, nodes }) =>
    matchesFilter(filter, [task, ...datasets, ...nodes]),
  )
  const jobs = sortRows(found, sort, SORT_VALUES)
  const width = widthOf(all, ({ task }) => task, [4, 40])
  return {
    list: 'jobs',
    columns: [
      { title: 'TASK', width, minWidth: Math.min(width, 20) },
      { title: 'LEASES', width: 6, align: 'right', dropOrder: 2 },
      { title: 'SINCE', width: 5, align: 'right', dropOrder: 1 },
      { title: 'ON', width: 16, minWidth: 8, grow: 1 },
      { title: 'DATASETS', width: 24, minWidth: 10, grow: 2 },
    ],
    sortable: Object.keys(SORT_VALUES),
    keys: jobs.map(({ task }) => task),
    total: all.length,
    copyIdAt: () => undefined,
    scopeAt: (index) => {
      const task = jobs[index]?.task
      return task === undefined ? undefined : { task, label: task, opens: 'leases' as const }
    },
    drawAt: (index, _widths, { nowMs }) => {
      const { task, leases: held, sinceMs, nodes, datasets } = jobs[index]!
      return [
        span(task),
        span(held.toLocaleString('en-US')),
        span(formatSpan(nowMs - sinceMs)),
        span(formatNodeList(nodes)),
        span(datasets.join(', ')),
      ]
    },
    emptyText: filter === '' ? 'No leases' : 'No job matches the filter',
  }
}

function sumUp(task: string, leases: readonly PlacedLease[]): JobRow {
  return {
    task,
    leases: leases.length,
    datasets: [...new Set(leases.map(({ dataset }) => dataset))].sort(),
    nodes: [...new Set(leases.map(({ node }) => node))].sort(),
    sinceMs: Math.min(...leases.map(({ createdAtMs }) => createdAtMs)),
  }
}
