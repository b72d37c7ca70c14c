import type { CopyUse } from '../../model/copy.js'
import type { Lease } from '../../model/lease.js'
import type { NodeEntry } from '../../model/node.js'
import type { RecordEvent } from '../../model/record-event.js'
import { measureNodeUsage, type NodeUsage } from './node-usage.js'

/** Events that a snapshot holds at most; `dsc history` reads further back. */
export const STATUS_EVENTS = 200

/** A node and how full it is against each limit of its policy. */
export interface NodeStatus extends NodeEntry {
  readonly usage: NodeUsage
}

/** A lease and the copy that it keeps. */
export interface LeaseStatus extends Lease {
  readonly dataset: string
  readonly node: string
}

/** A download under way, or one that was left. */
export interface TransferStatus {
  readonly copyId: string
  readonly dataset: string
  readonly node: string
  /** `reserved` while the source is listed. */
  readonly state: 'reserved' | 'staging'
  readonly source: string | null
  readonly writtenBytes: number
  /** Bytes that it will take in all; 0 while the source is listed. */
  readonly chargedBytes: number
  readonly files: number
  readonly startedAtMs: number
  /** The task that downloads; null when nobody does (abandoned: a later prepare or cleanup takes it). */
  readonly stager: string | null
  readonly waitingTasks: readonly string[]
}

/** What the record says at one moment: everything that a status shows. */
export interface StatusSnapshot {
  readonly takenAtMs: number
  readonly recordLocation: string
  readonly nodes: readonly NodeStatus[]
  /** Ordered by dataset, node, creation. */
  readonly copies: readonly CopyUse[]
  readonly leases: readonly LeaseStatus[]
  readonly transfers: readonly TransferStatus[]
  /** Newest first, at most `STATUS_EVENTS`. */
  readonly events: readonly RecordEvent[]
}

/** What `composeStatus` makes a snapshot of. */
export interface StatusParts {
  readonly takenAtMs: number
  readonly recordLocation: string
  readonly nodes: readonly NodeEntry[]
  readonly copies: readonly CopyUse[]
  /** All copies of the nodes, for their usage. */
  readonly chargedCopies: readonly CopyUse[]
  readonly leases: readonly Lease[]
  readonly events: readonly RecordEvent[]
}

/** Puts together what was read: usage per node, leases with their copies, transfers with their waiters. */
export function composeStatus(parts: StatusParts): StatusSnapshot {
  const byNode = Map.groupBy(parts.chargedCopies, (copy) => copy.node)
  const byId = new Map(parts.copies.map((copy) => [copy.copyId, copy]))
  const leases = joinLeases(parts.leases, byId)
  const moving = parts.copies.filter((copy) => copy.state === 'reserved' || copy.state === 'staging')
  return {
    takenAtMs: parts.takenAtMs,
    recordLocation: parts.recordLocation,
    nodes: parts.nodes.map((entry) => ({
      ...entry,
      usage: measureNodeUsage(entry.policy, entry.disk, byNode.get(entry.node) ?? []),
    })),
    copies: parts.copies,
    leases,
    transfers: describeTransfers(moving, leases),
    events: parts.events,
  }
}

/** Adds to each lease what its copy is of; leases of unknown copies are left out. */
export function joinLeases(
  leases: readonly Lease[],
  copies: ReadonlyMap<string, CopyUse>,
): readonly LeaseStatus[] {
  return leases.flatMap((lease) => {
    const copy = copies.get(lease.copyId)
    return copy ? [{ ...lease, dataset: copy.dataset, node: copy.node }] : []
  })
}

/** What is known of copies under way, with their stagers and waiters. */
export function describeTransfers(
  moving: readonly CopyUse[],
  leases: readonly LeaseStatus[],
): readonly TransferStatus[] {
  const copyIds = new Set(moving.map((copy) => copy.copyId))
  const leasesOf = Map.groupBy(
    leases.filter((lease) => copyIds.has(lease.copyId)),
    (lease) => lease.copyId,
  )
  return moving.map((copy) => describeTransfer(copy, leasesOf.get(copy.copyId) ?? []))
}

function describeTransfer(copy: CopyUse, leases: readonly Lease[]): TransferStatus {
  const stager = copy.isBeingStaged ? leases.find((lease) => lease.purpose === 'stage') : undefined
  const waiting = leases.filter((lease) => lease.purpose === 'use' && lease.task !== stager?.task)
  return {
    copyId: copy.copyId,
    dataset: copy.dataset,
    node: copy.node,
    state: copy.state === 'reserved' ? 'reserved' : 'staging',
    source: copy.source?.source ?? null,
    writtenBytes: copy.writtenBytes,
    chargedBytes: copy.chargedBytes,
    files: copy.files,
    startedAtMs: copy.createdAtMs,
    stager: stager?.task ?? null,
    waitingTasks: [...new Set(waiting.map((lease) => lease.task))],
  }
}
