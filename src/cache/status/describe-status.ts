import { redactUrl } from '../../failure/redact.js'
import type { CopyUse } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { formatTime } from '../../model/format-time.js'
import type { RecordEvent } from '../../model/record-event.js'
import { describeLease } from '../leases/describe-lease.js'
import type { NodeStatus, StatusSnapshot, TransferStatus } from './compose-status.js'
import type { DatasetExplanation } from './explain-dataset.js'
import type { ExplanationAnswer } from './explanation-answer.js'
import type { StripedLayout } from './find-layouts.js'
import { listHoldings } from './list-holdings.js'
import type { WaitStatus } from './list-waits.js'
import type {
  CopyAnswer,
  EventAnswer,
  LayoutAnswer,
  NodeAnswer,
  StatusAnswer,
  TransferAnswer,
  WaitAnswer,
} from './status-answer.js'

/** `dsc status --json`. Its copies can be iterated once, as there may be 100,000. */
export function describeStatus(
  snapshot: StatusSnapshot,
): Omit<StatusAnswer, 'copies'> & { readonly copies: IteratorObject<CopyAnswer> } {
  return {
    dsc: 1,
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

/** Sources without secrets: copies of a dataset that were read together share its definition. */
const SOURCES = new WeakMap<Dataset, string>()

function describeSource(dataset: Dataset): string {
  const known = SOURCES.get(dataset) ?? redactUrl(dataset.source)
  SOURCES.set(dataset, known)
  return known
}

/** A copy, in the form that every answer uses. */
export function describeCopy(copy: CopyUse): CopyAnswer {
  return {
    dataset: copy.dataset,
    version: copy.version,
    node: copy.node,
    state: copy.state,
    diskBytes: copy.chargedBytes,
    lastTask: copy.lastTask,
    isLocked: copy.lock !== null,
    referenceCount: copy.referenceCount,
    lastUsedAt: formatTime(copy.lastUsedAtMs),
    copyId: copy.copyId,
    path: copy.path,
    origin: copy.origin,
    source: copy.source && describeSource(copy.source),
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

/** A striped version. `missing` holds the indexes of the stripes that are gone. */
export function describeLayout(layout: StripedLayout): LayoutAnswer {
  const { dataset, version, nodes, stripes, isComplete } = layout
  const missing = stripes.filter(({ state }) => state === 'missing').map(({ index }) => index)
  return { dataset, version, nodes, isComplete, missing, stripes }
}

/** A line of the history, in the form that every answer uses. */
export function describeEvent(event: RecordEvent): EventAnswer {
  const { atMs, ...rest } = event
  return { ...rest, at: formatTime(atMs) }
}

/** A node with its disk and its quota. */
export function describeNode({ seenAtMs, agent, ...node }: NodeStatus): NodeAnswer {
  return {
    ...node,
    agent: agent && { url: agent.url, seenAt: formatTime(agent.seenAtMs) },
    seenAt: formatTime(seenAtMs),
  }
}

/** A download, from the source or from other nodes. */
export function describeTransfer(transfer: TransferStatus): TransferAnswer {
  const { startedAtMs, stagerSeenAtMs, source, chargedBytes, waiters: _, ...rest } = transfer
  return {
    ...rest,
    diskBytes: chargedBytes,
    source: source === null ? null : redactUrl(source),
    startedAt: formatTime(startedAtMs),
    stagerSeenAt: stagerSeenAtMs === null ? null : formatTime(stagerSeenAtMs),
  }
}

/** A task that waits for its dataset. */
export function describeWait({ sinceMs, ...wait }: WaitStatus): WaitAnswer {
  return { ...wait, since: formatTime(sinceMs) }
}

/** `dsc why <dataset> --json`: why the dataset is here, is gone, or never came. */
export function describeExplanation(explained: DatasetExplanation): ExplanationAnswer {
  const { dataset, copies, layouts, lastEvicted, lastRefused, lastFailed, nextVictims } = explained
  return {
    dsc: 1,
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
