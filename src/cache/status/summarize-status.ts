import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { NodeEntry } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import {
  describeTransfers,
  type NodeStatus,
  STATUS_EVENTS,
  seeStagers,
  type TransferStatus,
} from './compose-status.js'
import type { StripedLayout } from './find-layouts.js'
import { listWaits, type WaitStatus } from './list-waits.js'
import { measureNodeUsage } from './node-usage.js'
import { readLayouts, readNodes, type StatusFilter } from './status-snapshot.js'

/** A dataset summed up over all nodes. */
export interface DatasetSummary {
  readonly dataset: string
  /** Nodes with a ready copy. */
  readonly ready: string[]
  /** Nodes with a copy that is not ready: being staged or evicted, or abandoned. */
  readonly unready: string[]
  bytes: number
  leases: number
  lastUsedAtMs: number
}

/** Datasets, each in a few numbers. */
export interface DatasetSummaries {
  /** Most recently used first. */
  readonly newest: readonly DatasetSummary[]
  readonly total: number
}

/** A status in a few numbers per node, for any number of copies. */
export interface StatusSummary {
  readonly takenAtMs: number
  readonly nodes: readonly NodeStatus[]
  readonly copies: number
  readonly layouts: readonly StripedLayout[]
  readonly transfers: readonly TransferStatus[]
  readonly waits: readonly WaitStatus[]
}

/** Reads sums, and only the copies that a sum cannot show: 100,000 copies take the memory of a few. */
export async function summarizeStatus(
  record: RecordStore,
  filter: StatusFilter,
  options: { readonly nowMs: number; readonly ownNode: NodeEntry },
): Promise<StatusSummary> {
  const { nowMs, ownNode } = options
  const { dataset: _, ...places } = filter
  const held = await record.sumCopies(places, nowMs) // usage counts all datasets of a node, even with a filter
  const matching = filter.dataset === undefined ? held : await record.sumCopies(filter, nowMs)
  const byNode = Map.groupBy(held, ({ node }) => node)
  const nodes = (await readNodes(record, filter, ownNode)).map(
    (entry): NodeStatus => ({
      ...entry,
      usage: measureNodeUsage(entry.policy, entry.disk, byNode.get(entry.node) ?? []),
    }),
  )
  // Ask only for states that exist: the record goes through all copies to find them.
  const isMoving = matching.some(({ state }) => state === 'reserved' || state === 'staging')
  const transfers = isMoving ? await readTransfers(record, filter, nowMs) : []
  const isStriped = matching.some((sum) => sum.isStriped)
  const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
  return {
    takenAtMs: nowMs,
    nodes: seeStagers(nodes, transfers),
    copies: matching.reduce((total, { copies }) => total + copies, 0),
    layouts: isStriped ? await readLayouts(record, filter, nowMs) : [],
    transfers,
    waits: listWaits({ takenAtMs: nowMs, transfers, events }),
  }
}

/** The most recently used datasets on the matching nodes. */
export async function summarizeDatasets(
  record: Pick<RecordStore, 'listNewestDatasets' | 'listCopies'>,
  filter: StatusFilter,
  { limit, nowMs }: { readonly limit: number; readonly nowMs: number },
): Promise<DatasetSummaries> {
  const { names, total } = await record.listNewestDatasets(filter, limit)
  const summaries = new Map<string, DatasetSummary>()
  for (const copy of await record.listCopies({ ...filter, datasets: names }, nowMs)) addCopy(summaries, copy)
  return { newest: names.map((name) => summaries.get(name)).filter((found) => found !== undefined), total }
}

async function readTransfers(
  record: RecordStore,
  filter: StatusFilter,
  nowMs: number,
): Promise<readonly TransferStatus[]> {
  const moving = await record.listCopies({ ...filter, states: ['reserved', 'staging'] }, nowMs)
  const nodes = [...new Set(moving.map((copy) => copy.node))]
  // A node may have many more leases than copies that move, so a few copies are queried one by one.
  const places =
    moving.length <= 2 * nodes.length
      ? moving.map(({ copyId }) => ({ copyId }))
      : nodes.map((node) => ({ node }))
  const leases: PlacedLease[] = []
  for (const place of places) leases.push(...(await record.listLeases(place)))
  const transferLeases = await record.listLeases({ purpose: 'transfer' })
  return describeTransfers(moving, { leases, transferLeases, takenAtMs: nowMs })
}

function addCopy(datasets: Map<string, DatasetSummary>, copy: CopyUse): void {
  const { dataset } = copy
  const summary = datasets.get(dataset) ?? {
    dataset,
    ready: [],
    unready: [],
    bytes: 0,
    leases: 0,
    lastUsedAtMs: 0,
  }
  datasets.set(dataset, summary)
  ;(copy.state === 'ready' ? summary.ready : summary.unready).push(copy.node)
  summary.bytes += copy.chargedBytes
  summary.leases += copy.referenceCount
  summary.lastUsedAtMs = Math.max(summary.lastUsedAtMs, copy.lastUsedAtMs)
}
