import { compareText } from '../../model/compare-text.js'
import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { NodeEntry } from '../../model/node.js'
import type { RecordEvent } from '../../model/record-event.js'
import { sumUpCopies } from '../../policy/copy-sums.js'
import { describeTransfers, type StatusSnapshot, seeStagers } from './compose-status.js'
import { findLayouts } from './find-layouts.js'
import { listWaits } from './list-waits.js'
import { measureNodeUsage } from './node-usage.js'

/** Everything read again since a snapshot. */
interface StatusChanges {
  readonly takenAtMs: number
  readonly nodes: readonly NodeEntry[]
  /** Ids of the copies read again, including deleted ones. */
  readonly copyIds: ReadonlySet<string>
  /** Those of them that still exist. */
  readonly copies: ReadonlyMap<string, CopyUse>
  /** Their leases. */
  readonly leases: readonly PlacedLease[]
  /** Leases of all nodes under which another node reads a copy. */
  readonly transferLeases: readonly PlacedLease[]
  readonly events: readonly RecordEvent[]
}

/** Applies changes to a snapshot; costs one pass over its copies and leases instead of composing everything again. */
export function updateStatus(before: StatusSnapshot, changes: StatusChanges): StatusSnapshot {
  const copies = mergeCopies(before.copies, changes)
  const known = new Map(before.nodes.map((node) => [node.node, node]))
  const touched = new Set<string>()
  for (const copy of changes.copies.values()) touched.add(copy.node)
  for (const copy of before.copies) {
    if (changes.copyIds.size > 0 && changes.copyIds.has(copy.copyId)) touched.add(copy.node)
  }
  for (const entry of changes.nodes) {
    if (known.get(entry.node)?.seenAtMs !== entry.seenAtMs) touched.add(entry.node)
  }
  const moving: CopyUse[] = []
  const ofNode = new Map<string, CopyUse[]>([...touched].map((node) => [node, []]))
  for (const copy of copies) {
    ofNode.get(copy.node)?.push(copy)
    if (copy.state === 'reserved' || copy.state === 'staging') moving.push(copy)
  }
  const transfers = describeTransfers(moving, changes)
  const nodes = changes.nodes.map((entry) => {
    const old = known.get(entry.node)
    const own = ofNode.get(entry.node)
    if (old && !own) return old
    return { ...entry, usage: measureNodeUsage(entry.policy, entry.disk, sumUpCopies(own ?? [])) }
  })
  return {
    takenAtMs: changes.takenAtMs,
    recordLocation: before.recordLocation,
    nodes: seeStagers(nodes, transfers),
    copies,
    layouts: changes.copyIds.size === 0 ? before.layouts : findLayouts(copies),
    leases:
      changes.copyIds.size === 0
        ? before.leases
        : [...before.leases.filter((lease) => !changes.copyIds.has(lease.copyId)), ...changes.leases],
    transfers,
    waits: listWaits({ takenAtMs: changes.takenAtMs, transfers, events: changes.events }),
    events: changes.events,
  }
}

/** Replaces the changed copies and keeps the order of the record: dataset, node, creation. */
function mergeCopies(before: readonly CopyUse[], changes: StatusChanges): readonly CopyUse[] {
  if (changes.copyIds.size === 0) return before
  const known = new Set<string>()
  const kept: CopyUse[] = []
  for (const copy of before) {
    const isChanged = changes.copyIds.has(copy.copyId)
    const now = isChanged ? changes.copies.get(copy.copyId) : copy
    if (now === undefined) continue
    if (isChanged) known.add(copy.copyId)
    kept.push(now)
  }
  const added = [...changes.copies.values()].filter((copy) => !known.has(copy.copyId))
  if (added.length === 0) return kept
  return [...kept, ...added].sort(
    (a, b) =>
      compareText(a.dataset, b.dataset) || compareText(a.node, b.node) || a.createdAtMs - b.createdAtMs,
  )
}
