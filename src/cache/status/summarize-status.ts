import type { CopyUse } from '../../model/copy.js'
import type { NodeEntry } from '../../model/node.js'
import type { RecordStore } from '../../records/record-store.js'
import {
  describeTransfers,
  type NodeStatus,
  STATUS_EVENTS,
  seeStagers,
  type TransferStatus,
} from './compose-status.js'
import { findLayouts, type StripedLayout } from './find-layouts.js'
import { listWaits, type WaitStatus } from './list-waits.js'
import { measureNodeUsage } from './node-usage.js'
import { readNodes, type StatusFilter } from './status-snapshot.js'

/** A dataset over all nodes. */
export interface DatasetSummary {
  readonly dataset: string
  /** Nodes with a ready copy. */
  readonly ready: string[]
  /** Nodes with a copy that is not ready: being staged, evicted, or left behind. */
  readonly unready: string[]
  bytes: number
  leases: number
  lastUsedAtMs: number
}

/** A status in few numbers: a node and a dataset each, however many copies there are. */
export interface StatusSummary {
  readonly takenAtMs: number
  readonly nodes: readonly NodeStatus[]
  readonly datasets: readonly DatasetSummary[]
  readonly copies: number
  readonly layouts: readonly StripedLayout[]
  readonly transfers: readonly TransferStatus[]
  readonly waits: readonly WaitStatus[]
}

/** Reads the record node by node, so that a cluster of 100,000 copies takes the memory of one node's. */
export async function summarizeStatus(
  record: RecordStore,
  filter: StatusFilter,
  options: { readonly nowMs: number; readonly ownNode: NodeEntry },
): Promise<StatusSummary> {
  const { nowMs, ownNode } = options
  const transferLeases = await record.listLeases({ purpose: 'transfer' })
  const nodes: NodeStatus[] = []
  const datasets = new Map<string, DatasetSummary>()
  const transfers: TransferStatus[] = []
  const striped: CopyUse[] = []
  let count = 0
  for (const entry of await readNodes(record, filter, ownNode)) {
    const { node } = entry
    const held = await record.listCopies({ node }, nowMs)
    nodes.push({ ...entry, usage: measureNodeUsage(entry.policy, entry.disk, held) })
    const copies = held.filter(({ dataset }) => filter.dataset === undefined || dataset === filter.dataset)
    count += copies.length
    for (const copy of copies) addCopy(datasets, copy)
    striped.push(...copies.filter(({ stripe, layouts }) => stripe || layouts))
    const moving = copies.filter(({ state }) => state === 'reserved' || state === 'staging')
    if (moving.length === 0) continue
    const leases = await record.listLeases({ node })
    transfers.push(...describeTransfers(moving, { leases, transferLeases, takenAtMs: nowMs }))
  }
  const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
  return {
    takenAtMs: nowMs,
    nodes: seeStagers(nodes, transfers),
    datasets: [...datasets.values()].toSorted((a, b) => (a.dataset < b.dataset ? -1 : 1)),
    copies: count,
    layouts: findLayouts(await completeStripes(record, striped, nowMs)),
    transfers,
    waits: listWaits({ takenAtMs: nowMs, transfers, events }),
  }
}

/** All copies of the datasets that lie in stripes: whole ones serve as stripes, too. */
async function completeStripes(
  record: RecordStore,
  striped: readonly CopyUse[],
  nowMs: number,
): Promise<readonly CopyUse[]> {
  const copies: CopyUse[] = []
  for (const dataset of new Set(striped.map((copy) => copy.dataset)))
    copies.push(...(await record.listCopies({ dataset }, nowMs)))
  return copies
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
