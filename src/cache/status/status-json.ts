import { redactUrl } from '../../failure/redact.js'
import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { NodeStatus, StatusSnapshot, TransferStatus } from './compose-status.js'
import type { DatasetExplanation } from './explain-dataset.js'
import type { StripedLayout } from './find-layouts.js'
import { listHoldings } from './list-holdings.js'
import type { WaitStatus } from './list-waits.js'

/** What `dsc status --json` prints. Scripts rely on the names: fields are only ever added. Times are ISO 8601, UTC.
 * The copies can be gone through once: there may be 100,000. */
export function describeStatus(snapshot: StatusSnapshot) {
  return {
    takenAt: formatTime(snapshot.takenAtMs),
    record: snapshot.recordLocation,
    nodes: snapshot.nodes.map(describeNode),
    copies: Iterator.from(snapshot.copies).map(describeCopy),
    layouts: snapshot.layouts.map(describeLayout),
    leases: snapshot.leases.map(describeLease),
    transfers: snapshot.transfers.map(describeTransfer),
    waits: snapshot.waits.map(describeWait),
    holdings: listHoldings(snapshot.copies),
    events: snapshot.events.map(describeEvent),
  }
}

/** A copy as `dsc status --json` prints it. Fields are only ever added. */
export function describeCopy(copy: CopyUse) {
  return {
    dataset: copy.dataset,
    version: copy.version,
    node: copy.node,
    state: copy.state,
    bytes: copy.chargedBytes,
    lastTask: copy.lastTask,
    locked: copy.lock !== null,
    referenceCount: copy.referenceCount,
    lastUsedAt: formatTime(copy.lastUsedAtMs),
    copyId: copy.copyId,
    path: copy.path,
    origin: copy.origin,
    source: copy.source === null ? null : redactUrl(copy.source.source),
    files: copy.files,
    contentBytes: copy.contentBytes,
    writtenBytes: copy.writtenBytes,
    lock: copy.lock && { by: copy.lock.by, reason: copy.lock.reason, at: formatTime(copy.lock.atMs) },
    createdAt: formatTime(copy.createdAtMs),
    readyAt: copy.readyAtMs === null ? null : formatTime(copy.readyAtMs),
    stripe: copy.stripe
      ? { index: copy.stripe.index, count: copy.stripe.nodes.length, nodes: copy.stripe.nodes }
      : null,
  }
}

/** A version in stripes. `complete` = every stripe is ready; `missing` names the indexes of those that are gone. */
export function describeLayout(layout: StripedLayout) {
  const { dataset, version, nodes, stripes, isComplete } = layout
  const missing = stripes.filter(({ state }) => state === 'missing').map(({ index }) => index)
  return { dataset, version, nodes, complete: isComplete, missing, stripes }
}

/** A lease as `dsc status --json` prints it. */
export function describeLease(lease: PlacedLease) {
  return {
    leaseId: lease.leaseId,
    dataset: lease.dataset,
    node: lease.node,
    copyId: lease.copyId,
    task: lease.task,
    purpose: lease.purpose,
    holder: lease.holder,
    createdAt: formatTime(lease.createdAtMs),
    renewedAt: formatTime(lease.renewedAtMs),
    expiresAt: lease.expiresAtMs === null ? null : formatTime(lease.expiresAtMs),
  }
}

/** An event as `dsc history --json` prints it. */
export function describeEvent(event: RecordEvent) {
  const { atMs, ...rest } = event
  return { ...rest, at: formatTime(atMs) }
}

/** A node as `dsc status --json` prints it. */
export function describeNode(node: NodeStatus) {
  const { seenAtMs, agent, ...rest } = node
  return {
    ...rest,
    ...(agent === undefined
      ? {}
      : { agent: agent && { url: agent.url, seenAt: formatTime(agent.seenAtMs) } }),
    seenAt: formatTime(seenAtMs),
  }
}

/** A download as `dsc status --json` prints it. */
export function describeTransfer(transfer: TransferStatus) {
  const { startedAtMs, stagerSeenAtMs, source, waiters: _, ...rest } = transfer
  return {
    ...rest,
    source: source === null ? null : redactUrl(source),
    startedAt: formatTime(startedAtMs),
    stagerSeenAt: stagerSeenAtMs === null ? null : formatTime(stagerSeenAtMs),
  }
}

/** A wait as `dsc status --json` prints it. */
export function describeWait({ sinceMs, ...wait }: WaitStatus) {
  return { ...wait, since: formatTime(sinceMs) }
}

/** Why a dataset is here, is gone, or never came, as `dsc why --json` prints it. */
export function describeExplanation(explained: DatasetExplanation) {
  const { dataset, copies, layouts, lastEvicted, lastRefused, lastFailed, nextVictims } = explained
  return {
    dataset,
    copies: copies.map(({ copy, origin, keepers, leases, rank }) => ({
      ...describeCopy(copy),
      hereBecause: origin ? describeEvent(origin) : null,
      keptBy: keepers,
      leases: leases.map(describeLease),
      evictionRank: rank ?? null,
    })),
    layouts: layouts.map(describeLayout),
    lastEvicted: lastEvicted ? describeEvent(lastEvicted) : null,
    lastRefused: lastRefused ? describeEvent(lastRefused) : null,
    lastFailed: lastFailed ? describeEvent(lastFailed) : null,
    nextVictims: nextVictims.map(({ lastUsedAtMs, ...victim }) => ({
      ...victim,
      lastUsedAt: formatTime(lastUsedAtMs),
    })),
  }
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString()
}
