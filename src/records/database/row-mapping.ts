import { DscError } from '../../failure/dsc-error.js'
import type { Copy, CopyLock, CopyOrigin, CopyState, CopyUse, Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { Lease, LeaseHolder, LeasePurpose } from '../../model/lease.js'
import type { NodeAgent, NodeEntry, NodeIdentity } from '../../model/node.js'
import type { CachePolicy, DiskUsage } from '../../model/policy.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import type { SqlRow, SqlValue } from './sql-database.js'

/** The columns of `copies`, in the order of `copyValues`. */
export const COPY_COLUMNS =
  'copy_id, dataset, node, version, state, origin, source, directory, path, charged_bytes, charged_inodes, ' +
  'written_bytes, files, content_bytes, lock_state, last_task, last_used_at_ms, created_at_ms, ready_at_ms, stripe'

/** Columns of a CopyUse; takes the current time (ms) twice as parameters. */
export const COPY_USE_COLUMNS = `${COPY_COLUMNS}, parties, layouts,
  (SELECT count(*) FROM leases l WHERE l.copy_id = copies.copy_id AND l.purpose <> 'stage'
    AND (l.expires_at_ms IS NULL OR l.expires_at_ms > ?)) AS reference_count,
  (SELECT count(*) FROM leases l WHERE l.copy_id = copies.copy_id AND l.purpose = 'stage'
    AND (l.expires_at_ms IS NULL OR l.expires_at_ms > ?)) AS stagers`

/** A copy from a row of `copies` joined with the definition of its dataset. */
export function toCopy(row: SqlRow): Copy {
  return toCopyOf(row, parseJson<Dataset | null>(row, 'source'))
}

function toCopyOf(row: SqlRow, source: Dataset | null): Copy {
  const stripe = parseJson<Stripe | null>(row, 'stripe')
  const parties = parseJson<readonly string[] | null>(row, 'parties')
  const layouts = parseJson<readonly (readonly string[])[] | null>(row, 'layouts')
  return {
    copyId: text(row, 'copy_id'),
    dataset: text(row, 'dataset'),
    node: text(row, 'node'),
    version: textOrNull(row, 'version'),
    state: text(row, 'state') as CopyState,
    origin: text(row, 'origin') as CopyOrigin,
    source,
    directory: text(row, 'directory'),
    path: text(row, 'path'),
    chargedBytes: number(row, 'charged_bytes'),
    chargedInodes: number(row, 'charged_inodes'),
    writtenBytes: number(row, 'written_bytes'),
    files: number(row, 'files'),
    contentBytes: number(row, 'content_bytes'),
    lock: parseJson<CopyLock | null>(row, 'lock_state'),
    lastTask: textOrNull(row, 'last_task'),
    lastUsedAtMs: number(row, 'last_used_at_ms'),
    createdAtMs: number(row, 'created_at_ms'),
    readyAtMs: numberOrNull(row, 'ready_at_ms'),
    ...(parties && { parties }),
    ...(stripe && { stripe }),
    ...(layouts && { layouts }),
  }
}

/** Reads rows of many copies; copies of one definition, on many nodes, share it in memory. */
export function createCopyUseReader(): (row: SqlRow) => CopyUse {
  const sources = new Map<SqlValue, Dataset | null>()
  return (row) => {
    const raw = row.source!
    if (!sources.has(raw)) sources.set(raw, parseJson<Dataset | null>(row, 'source'))
    return Object.assign(toCopyOf(row, sources.get(raw)!), {
      referenceCount: number(row, 'reference_count'),
      isBeingStaged: number(row, 'stagers') > 0,
    })
  }
}

/** The values of a copy in the order of the columns of `copies`. */
export function copyValues(copy: Copy): readonly SqlValue[] {
  return [
    copy.copyId,
    copy.dataset,
    copy.node,
    copy.version,
    copy.state,
    copy.origin,
    copy.source && JSON.stringify(copy.source),
    copy.directory,
    copy.path,
    copy.chargedBytes,
    copy.chargedInodes,
    copy.writtenBytes,
    copy.files,
    copy.contentBytes,
    copy.lock && JSON.stringify(copy.lock),
    copy.lastTask,
    copy.lastUsedAtMs,
    copy.createdAtMs,
    copy.readyAtMs,
    stripeValue(copy.stripe),
  ]
}

/** A stripe as the record stores and compares it; null = the whole version. */
export function stripeValue(stripe: Stripe | undefined): string | null {
  return stripe ? JSON.stringify({ index: stripe.index, nodes: stripe.nodes }) : null
}

/** A lease from a row of `leases`. */
export function toLease(row: SqlRow): Lease {
  return {
    leaseId: text(row, 'lease_id'),
    copyId: text(row, 'copy_id'),
    purpose: text(row, 'purpose') as LeasePurpose,
    task: text(row, 'task'),
    holder: parseJson<LeaseHolder>(row, 'holder'),
    createdAtMs: number(row, 'created_at_ms'),
    renewedAtMs: number(row, 'renewed_at_ms'),
    expiresAtMs: numberOrNull(row, 'expires_at_ms'),
    ...(row.read_at_ms !== null && { readAtMs: number(row, 'read_at_ms') }),
  }
}

/** A node from a row of `nodes`. */
export function toNode(row: SqlRow): NodeEntry {
  const agent = parseJson<NodeAgent | null>(row, 'agent')
  const identity = parseJson<NodeIdentity | null>(row, 'identity')
  return {
    node: text(row, 'node'),
    cacheRoot: text(row, 'cache_root'),
    policy: parseJson<CachePolicy>(row, 'policy'),
    disk: parseJson<DiskUsage>(row, 'disk'),
    seenAtMs: number(row, 'seen_at_ms'),
    ...(identity && { identity }),
    ...(agent && { agent }),
  }
}

/** A dataset from a row of `datasets`. */
export function toDataset(row: SqlRow): Dataset {
  return parseJson<Dataset>(row, 'definition')
}

/** An event from a row of `events`. */
export function toEvent(row: SqlRow): RecordEvent {
  return {
    sequence: number(row, 'sequence'),
    atMs: number(row, 'at_ms'),
    kind: text(row, 'kind') as RecordEventKind,
    node: text(row, 'node'),
    dataset: text(row, 'dataset'),
    copyId: textOrNull(row, 'copy_id'),
    task: textOrNull(row, 'task'),
    reason: text(row, 'reason'),
    detail: parseJson<Record<string, unknown>>(row, 'detail'),
  }
}

function text(row: SqlRow, column: string): string {
  return String(row[column])
}

function textOrNull(row: SqlRow, column: string): string | null {
  return row[column] === null ? null : String(row[column])
}

function number(row: SqlRow, column: string): number {
  return Number(row[column])
}

function numberOrNull(row: SqlRow, column: string): number | null {
  return row[column] === null ? null : Number(row[column])
}

/**
 * Null columns are JSON null. The record wrote the value, so its shape is trusted; invalid JSON from elsewhere is
 * named.
 */
export function parseJson<T>(row: SqlRow, column: string): T {
  const raw = String(row[column] ?? 'null')
  try {
    return JSON.parse(raw) as T
  } catch (cause) {
    const found = JSON.stringify(raw.length > 60 ? `${raw.slice(0, 60)}…` : raw)
    throw new DscError(
      'RECORD_UNAVAILABLE',
      `the record is damaged: expected JSON in ${column}, found ${found}`,
      { hint: 'find out who writes into it beside dsc, and restore a backup', cause },
    )
  }
}
