import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import { type Holding, listHoldings } from '../../../cache/status/list-holdings.js'
import { formatByteSize } from '../../../model/byte-size.js'
import { formatNodeList } from '../../../model/format-node-list.js'
import { formatPercent, formatSpan } from '../text/format-cells.js'
import { span } from '../text/styled-line.js'
import { type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

/** A dataset over all nodes. */
interface DatasetRow extends Holding {
  readonly ready: number
  readonly bytes: number
  readonly leases: number
  readonly lastUsedAtMs: number
}

const SORT_VALUES: SortValues<DatasetRow> = {
  DATASET: ({ dataset }) => dataset,
  READY: ({ ready }) => ready,
  SIZE: ({ bytes }) => bytes,
  LEASES: ({ leases }) => leases,
  USED: ({ lastUsedAtMs }) => lastUsedAtMs,
  ON: ({ nodes }) => nodes.length,
}

/** Datasets, with the nodes that have them. */
export function listDatasetRows({ copies }: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const all = [...Map.groupBy(copies, ({ dataset }) => dataset).values()].map((own): DatasetRow => {
    const [holding] = listHoldings(own)
    return {
      ...holding!,
      ready: own.filter(({ state }) => state === 'ready').length,
      bytes: own.reduce((sum, { chargedBytes }) => sum + chargedBytes, 0),
      leases: own.reduce((sum, { referenceCount }) => sum + referenceCount, 0),
      lastUsedAtMs: own.reduce((latest, copy) => Math.max(latest, copy.lastUsedAtMs), 0),
    }
  })
  const found = all.filter(({ dataset, nodes }) =>
    matchesFilter(filter, [dataset, ...nodes.map(({ node }) => node)]),
  )
  const datasets = sortRows(found, sort, SORT_VALUES)
  const name = widthOf(all, ({ dataset }) => dataset, [7, 60])
  return {
    list: 'datasets',
    columns: [
      { title: 'DATASET', width: name, minWidth: Math.min(name, 16), grow: 1 },
      { title: 'READY', width: 5, align: 'right' },
      { title: 'SIZE', width: 8, align: 'right', dropOrder: 2 },
      { title: 'LEASES', width: 6, align: 'right', dropOrder: 3 },
      { title: 'USED', width: 4, align: 'right', dropOrder: 1 },
      { title: 'ON', width: 20, minWidth: 10, grow: 2 },
    ],
    sortable: Object.keys(SORT_VALUES),
    keys: datasets.map(({ dataset }) => dataset),
    total: all.length,
    copyIdAt: () => undefined,
    scopeAt: (index) => {
      const dataset = datasets[index]?.dataset
      return dataset === undefined ? undefined : { dataset, label: dataset, opens: 'copies' as const }
    },
    drawAt: (index, _widths, { nowMs }) => {
      const { dataset, ready, bytes, leases, lastUsedAtMs, nodes } = datasets[index]!
      return [
        span(dataset, { isBold: leases > 0 }),
        span(ready.toLocaleString('en-US')),
        span(formatByteSize(bytes)),
        span(leases.toLocaleString('en-US')),
        span(formatSpan(nowMs - lastUsedAtMs)),
        span(formatHolders(nodes)),
      ]
    },
    emptyText: filter === '' ? 'No copies yet: p prepares a dataset' : 'No dataset matches the filter',
  }
}

/** `gpu-[01-07]*, gpu-08, gpu-09 (40%)`: `*` means in use, a percentage is the part downloaded so far. */
export function formatHolders(nodes: Holding['nodes']): string {
  const ready = (use: 'used' | 'idle') =>
    nodes
      .filter(({ state, referenceCount }) => state === 'ready' && referenceCount > 0 === (use === 'used'))
      .map(({ node }) => node)
  const used = formatNodeList(ready('used')).split(/,(?![^[]*\])/)
  return [
    ...used.filter((list) => list !== '').map((list) => `${list}*`),
    formatNodeList(ready('idle')).replaceAll(/,(?![^[]*\])/g, ', '),
    ...nodes
      .filter(({ state }) => state !== 'ready')
      .map(
        ({ node, state, fillRatio }) =>
          `${node} (${state === 'staging' ? formatPercent(fillRatio, 1) : state})`,
      ),
  ]
    .filter((text) => text !== '')
    .join(', ')
}
