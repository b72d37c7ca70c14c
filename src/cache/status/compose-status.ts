import type { CopyUse } from '../../model/copy.js'
import { findReceiver, isLeaseLive, type Lease, type PlacedLease } from '../../model/lease.js'
import type { NodeEntry } from '../../model/node.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { CopySum } from '../../policy/copy-sums.js'
import type { StripedLayout } from './find-layouts.js'
import { listWaits, type WaitedStaging, type WaitStatus } from './list-waits.js'
import { measureNodeUsage, type NodeUsage } from './node-usage.js'

/** Maximum number of events in a snapshot; `dsc history` reads further back. */
export const STATUS_EVENTS = 200

/** A node and how full it is against each limit of its policy. */
export interface NodeStatus extends NodeEntry {
  readonly usage: NodeUsage
}

/** A download, running or abandoned. */
export interface TransferStatus {
  readonly copyId: string
  readonly dataset: string
  readonly node: string
  /** `reserved` while the source is listed. */
  readonly state: 'reserved' | 'staging'
  readonly source: string | null
  readonly writtenBytes: number
  /** Total size of the objects, which `writtenBytes` grows to; the charge leaves room for more. */
  readonly contentBytes: number
  /** Bytes that it will take on disk in total; 0 while the source is listed. */
  readonly chargedBytes: number
  readonly files: number
  readonly startedAtMs: number
  /** The task that downloads; null if abandoned: a later prepare or cleanup takes it over. */
  readonly stager: string | null
  /** When the stager last renewed its lease, Unix epoch in ms. */
  readonly stagerSeenAtMs: number | null
  readonly waitingTasks: readonly string[]
  /** All tasks that wait for it, including the stager's own, and since when, Unix epoch in ms. */
  readonly waiters: WaitedStaging['waiters']
  /** Nodes whose copies it reads at present; empty: only the source. */
  readonly servedBy: readonly string[]
  /** Its readers during the download, and what each waits for; absent if they were not asked, as on other nodes. */
  readonly readers?: readonly ReaderStatus[]
}

/** The state of the record at one moment: everything that a status shows. */
export interface StatusSnapshot {
  readonly takenAtMs: number
  readonly recordLocation: string
  readonly nodes: readonly NodeStatus[]
  /** Ordered by dataset, node, creation. */
  readonly copies: readonly CopyUse[]
  /** Versions spread over several nodes in stripes, complete or not. */
  readonly layouts: readonly StripedLayout[]
  readonly leases: readonly PlacedLease[]
  readonly transfers: readonly TransferStatus[]
  /** Tasks that lack their dataset, longest wait first. */
  readonly waits: readonly WaitStatus[]
  /** Newest first, at most `STATUS_EVENTS`. */
  readonly events: readonly RecordEvent[]
}

/** The parts of a snapshot for `composeStatus`. */
interface StatusParts extends Omit<StatusSnapshot, 'nodes' | 'transfers' | 'waits'> {
  readonly nodes: readonly NodeEntry[]
  /** Of all copies of the nodes, for their usage. */
  readonly sums: readonly CopySum[]
  /** Leases of all nodes under which another node reads a copy. */
  readonly transferLeases: readonly PlacedLease[]
}

/** Combines the parts: usage per node, leases with their copies, transfers with their waiters. */
export function composeStatus(parts: StatusParts): StatusSnapshot {
  const byNode = Map.groupBy(parts.sums, (sum) => sum.node)
  const moving = parts.copies.filter((copy) => copy.state === 'reserved' || copy.state === 'staging')
  const transfers = describeTransfers(moving, parts)
  return {
    takenAtMs: parts.takenAtMs,
    recordLocation: parts.recordLocation,
    nodes: seeStagers(
      parts.nodes.map((entry) => ({
        ...entry,
        usage: measureNodeUsage(entry.policy, entry.disk, byNode.get(entry.node) ?? []),
      })),
      transfers,
    ),
    copies: parts.copies,
    layouts: parts.layouts,
    leases: parts.leases,
    transfers,
    waits: listWaits({ takenAtMs: parts.takenAtMs, transfers, events: parts.events }),
    events: parts.events,
  }
}

/** A stager that renews its lease shows that its node is alive, no matter how long ago the node last saved itself. */
export function seeStagers<Node extends NodeEntry>(
  nodes: readonly Node[],
  transfers: readonly TransferStatus[],
): readonly Node[] {
  const seen = new Map<string, number>()
  for (const { node, stagerSeenAtMs } of transfers) {
    if (stagerSeenAtMs !== null) seen.set(node, Math.max(stagerSeenAtMs, seen.get(node) ?? 0))
  }
  return nodes.map((entry) => {
    const seenAtMs = seen.get(entry.node) ?? 0
    return seenAtMs > entry.seenAtMs ? { ...entry, seenAtMs } : entry
  })
}

/** Copies under way, with their stagers, their waiters and the nodes that serve them. */
export function describeTransfers(
  moving: readonly CopyUse[],
  known: Pick<StatusParts, 'leases' | 'transferLeases' | 'takenAtMs'>,
): readonly TransferStatus[] {
  const copyIds = new Set(moving.map((copy) => copy.copyId))
  const leasesOf = Map.groupBy(
    known.leases.filter((lease) => copyIds.has(lease.copyId)),
    (lease) => lease.copyId,
  )
  const live = known.transferLeases.filter((lease) => isLeaseLive(lease, known.takenAtMs))
  return moving.map((copy) => {
    const serving = live.filter(
      (lease) => lease.dataset === copy.dataset && findReceiver(lease) === copy.node,
    )
    const servedBy = [...new Set(serving.map(({ node }) => node))].sort()
    return { ...describeTransfer(copy, leasesOf.get(copy.copyId) ?? []), servedBy }
  })
}

function describeTransfer(copy: CopyUse, leases: readonly Lease[]): Omit<TransferStatus, 'servedBy'> {
  const stager = copy.isBeingStaged ? leases.find((lease) => lease.purpose === 'stage') : undefined
  const using = leases.filter((lease) => lease.purpose === 'use')
  const waiters = [...Map.groupBy(using, ({ task }) => task)].map(([task, own]) => ({
    task,
    sinceMs: Math.min(...own.map(({ createdAtMs }) => createdAtMs)),
    isReading: own.some(({ readAtMs }) => readAtMs !== undefined),
  }))
  return {
    copyId: copy.copyId,
    dataset: copy.dataset,
    node: copy.node,
    state: copy.state === 'reserved' ? 'reserved' : 'staging',
    source: copy.source?.source ?? null,
    writtenBytes: copy.writtenBytes,
    contentBytes: copy.contentBytes,
    chargedBytes: copy.chargedBytes,
    files: copy.files,
    startedAtMs: copy.createdAtMs,
    stager: stager?.task ?? null,
    stagerSeenAtMs: stager?.renewedAtMs ?? null,
    waitingTasks: waiters
      .filter(({ task, isReading }) => task !== stager?.task && !isReading)
      .map(({ task }) => task),
    waiters,
  }
}
