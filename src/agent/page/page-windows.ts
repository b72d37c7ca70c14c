import { asNodeStatus, type ClusterNode, type ClusterStatus } from '../../cache/status/cluster-status.js'
import { describeNode, describeTransfer } from '../../cache/status/describe-status.js'
import { estimateLeftMs, findRate } from '../../cache/status/transfer-rates.js'
import { DscError } from '../../failure/dsc-error.js'
import { compareText } from '../../model/compare-text.js'

/** The part of a list that a page shows. */
interface Window {
  /** Index of the first row, from 0. */
  readonly from: number
  /** Number of rows, 1 to `MAX_ROWS`. */
  readonly count: number
  /** A column; absent: the record's order. */
  readonly sort: string | undefined
  readonly isDescending: boolean
  /** Words that a row must contain, in lower case. */
  readonly words: readonly string[]
}

/** Maximum number of rows in an answer, and of columns in a matrix. */
const MAX_ROWS = 200
const MAX_FILTER = 200
/** Maximum number of troubles that are told one by one. */
const MAX_TROUBLES = 20

/** Reads `from`, `count`, `sort` (with a leading `-`: descending) and `filter`. Throws USAGE for an invalid value. */
export function parseWindow(query: URLSearchParams, prefix = ''): Window {
  const sort = query.get(`${prefix}sort`) ?? undefined
  const filter = query.get(`${prefix}filter`) ?? ''
  if (filter.length > MAX_FILTER)
    throw new DscError('USAGE', `filter: expected up to ${MAX_FILTER} characters, found ${filter.length}`)
  return {
    from: parseCount(query, `${prefix}from`, { from: 0, to: 10_000_000, otherwise: 0 }),
    count: parseCount(query, `${prefix}count`, { from: 1, to: MAX_ROWS, otherwise: 50 }),
    sort: sort?.replace(/^-/, ''),
    isDescending: sort?.startsWith('-') === true,
    words: filter
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== ''),
  }
}

/** A whole number in a query. Throws USAGE for anything else, or for one out of range. */
export function parseCount(
  query: URLSearchParams,
  name: string,
  range: { readonly from: number; readonly to: number; readonly otherwise: number },
): number {
  const raw = query.get(name)
  if (raw === null) return range.otherwise
  const value = /^\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN
  if (value >= range.from && value <= range.to) return value
  throw new DscError(
    'USAGE',
    `${name}: expected a whole number from ${range.from} to ${range.to}, found ${JSON.stringify(raw.slice(0, 50))}`,
  )
}

/** The figures at the top of the page. */
export function summarize(status: ClusterStatus) {
  const read = status.nodes.flatMap((node) => (node.read ? [{ ...node, ...node.read }] : []))
  const sum = (of: (node: (typeof read)[number]) => number) =>
    read.reduce((total, node) => total + of(node), 0)
  const datasets = new Set<number>()
  let leases = 0
  for (const { cells } of read) {
    cells.forEach((dataset, { referenceCount }) => {
      datasets.add(dataset)
      leases += referenceCount
    })
  }
  return {
    takenAt: new Date(status.takenAtMs).toISOString(),
    record: status.recordLocation,
    nodes: status.nodes.length,
    nodesRead: read.length,
    datasets: datasets.size,
    copies: sum(({ cells }) => cells.length),
    leases,
    transfers: status.transfers.length,
    waits: status.waits.length,
    waitingSince: status.waits[0] ? new Date(status.waits[0].sinceMs).toISOString() : null,
    troubles: status.troubles.slice(0, MAX_TROUBLES).map(({ sinceMs, ...trouble }) => ({
      ...trouble,
      since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    })),
    totalTroubles: status.troubles.length,
    idleBytes: sum(({ usage }) => usage.evictableBytes),
    allowedBytes: sum(({ usage, entry }) => usage.diskBytes.allowed ?? entry.disk.capacityBytes),
    oursBytes: sum(({ usage }) => usage.onDisk.oursBytes),
    othersBytes: sum(({ usage }) => usage.onDisk.othersBytes),
    freeBytes: sum(({ usage }) => usage.onDisk.freeBytes),
    capacityBytes: sum(({ entry }) => entry.disk.capacityBytes),
    throughput: status.throughput.total,
  }
}

/** The columns by which nodes can be sorted. */
const NODE_ORDERS: Readonly<Record<string, (node: ClusterNode) => number | string>> = {
  node: ({ entry }) => entry.node,
  datasets: ({ read }) => read?.usage.datasets.used ?? -1,
  space: ({ read, entry }) =>
    read
      ? read.usage.diskBytes.used / Math.max(1, read.usage.diskBytes.allowed ?? entry.disk.capacityBytes)
      : -1,
  disk: ({ entry: { disk } }) => 1 - disk.freeBytes / Math.max(1, disk.capacityBytes),
  free: ({ entry }) => entry.disk.freeBytes,
  evictable: ({ read }) => read?.usage.evictableBytes ?? -1,
  seen: ({ entry }) => -entry.seenAtMs,
}

/** Nodes against their limits, as in `dsc status --json`, and how fast each one downloads. */
export function windowNodes(status: ClusterStatus, window: Window) {
  const found = status.nodes.filter(({ entry }) => hasWords(window, [entry.node, entry.cacheRoot]))
  const { total, shown } = cut(sortBy(found, window, NODE_ORDERS), window)
  return {
    total,
    rows: shown.map((node) => {
      const rates = status.throughput.byNode.get(node.entry.node) ?? []
      return {
        ...describeNode(asNodeStatus(node)),
        bytesPerSecond: rates.at(-1) ?? 0,
        throughput: rates,
      }
    }),
  }
}

/** A dataset over all nodes. */
interface DatasetSum {
  readonly number: number
  readonly dataset: string
  ready: number
  unready: number
  diskBytes: number
  leases: number
  lastUsedAtMs: number
}

const DATASET_ORDERS: Readonly<Record<string, (sum: DatasetSum) => number | string>> = {
  dataset: ({ dataset }) => dataset,
  ready: ({ ready }) => ready,
  size: ({ diskBytes }) => diskBytes,
  leases: ({ leases }) => leases,
  used: ({ lastUsedAtMs }) => lastUsedAtMs,
}

/** Datasets × nodes: the visible rows and columns, and their cells. */
export function windowMatrix(status: ClusterStatus, { rows, columns }: { rows: Window; columns: Window }) {
  const found = sumDatasets(status).filter(({ dataset }) => hasWords(rows, [dataset]))
  const datasets = cut(sortBy(found, { ...rows, sort: rows.sort ?? 'dataset' }, DATASET_ORDERS), rows)
  const nodes = cut(
    sortBy(
      status.nodes.filter(({ entry }) => hasWords(columns, [entry.node])),
      columns,
      NODE_ORDERS,
    ),
    columns,
  )
  const ratios = new Map(
    status.transfers.map(({ dataset, node, writtenBytes, contentBytes }) => [
      JSON.stringify([dataset, node]),
      contentBytes > 0 ? Math.min(1, writtenBytes / contentBytes) : 0,
    ]),
  )
  return {
    total: datasets.total,
    totalNodes: nodes.total,
    nodes: nodes.shown.map(({ entry }) => entry.node),
    rows: datasets.shown.map(({ number, lastUsedAtMs, ...sum }) => ({
      ...sum,
      lastUsedAt: new Date(lastUsedAtMs).toISOString(),
      cells: nodes.shown.map(({ entry, read }) => {
        const cell = read?.cells.find(number)
        if (!cell) return null
        const isHere = cell.state === 'ready'
        const fillRatio = isHere ? 1 : (ratios.get(JSON.stringify([sum.dataset, entry.node])) ?? 0)
        return {
          state: cell.state,
          isLocked: cell.isLocked,
          referenceCount: cell.referenceCount,
          diskBytes: cell.bytes,
          fillRatio,
        }
      }),
    })),
  }
}

function sumDatasets(status: ClusterStatus): readonly DatasetSum[] {
  const sums = new Map<number, DatasetSum>()
  for (const { read } of status.nodes) {
    read?.cells.forEach((number, { state, referenceCount, bytes, lastUsedAtMs }) => {
      const sum = sums.get(number) ?? {
        number,
        dataset: status.datasets[number]!,
        ready: 0,
        unready: 0,
        diskBytes: 0,
        leases: 0,
        lastUsedAtMs: 0,
      }
      sums.set(number, sum)
      if (state === 'ready') sum.ready += 1
      else sum.unready += 1
      sum.diskBytes += bytes
      sum.leases += referenceCount
      sum.lastUsedAtMs = Math.max(sum.lastUsedAtMs, lastUsedAtMs)
    })
  }
  return [...sums.values()]
}

/** Downloads, as in `dsc status --json`, with the rate of the last 15 s and the time left at that rate. */
export function windowTransfers(status: ClusterStatus, window: Window) {
  const found = status.transfers.filter(({ dataset, node, stager, servedBy }) =>
    hasWords(window, [dataset, node, stager ?? '', ...servedBy]),
  )
  const { total, shown } = cut(found, window)
  return {
    total,
    rows: shown.map((transfer) => {
      const rate = findRate(status.throughput.progress, transfer.copyId)
      const leftMs = estimateLeftMs(transfer.contentBytes - transfer.writtenBytes, rate)
      return { ...describeTransfer(transfer), bytesPerSecond: rate ?? null, leftMs: leftMs ?? null }
    }),
  }
}

/** Names of datasets and nodes that contain the words, for fields that complete them. */
export function windowNames(status: ClusterStatus, window: Window) {
  const match = (names: readonly string[]) =>
    names
      .filter((name) => hasWords(window, [name]))
      .toSorted(compareText)
      .slice(0, window.count)
  return { datasets: match(status.datasets), nodes: match(status.nodes.map(({ entry }) => entry.node)) }
}

function hasWords({ words }: Window, texts: readonly string[]): boolean {
  return words.every((word) => texts.some((text) => text.toLowerCase().includes(word)))
}

function sortBy<Row>(
  rows: readonly Row[],
  { sort, isDescending }: Window,
  orders: Readonly<Record<string, (row: Row) => number | string>>,
): readonly Row[] {
  if (sort === undefined) return rows
  const findValue = Object.hasOwn(orders, sort) ? orders[sort] : undefined
  if (!findValue)
    throw new DscError(
      'USAGE',
      `sort: expected one of ${Object.keys(orders).join(', ')}, found ${JSON.stringify(sort.slice(0, 50))}`,
    )
  const sign = isDescending ? -1 : 1
  return rows.toSorted((a, b) => {
    const [left, right] = [findValue(a), findValue(b)]
    if (typeof left === 'string') return sign * compareText(left, String(right))
    return sign * (left - Number(right))
  })
}

function cut<Row>(rows: readonly Row[], { from, count }: Window) {
  return { total: rows.length, shown: rows.slice(from, from + count) }
}
