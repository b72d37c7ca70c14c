import type { Copy, CopyLock, CopyUse } from '../model/copy.js'
import type { EvictionPlan, Victim } from '../policy/plan-eviction.js'
import { writeEvent } from './event-writing.js'
import type { CopyFilter } from './record-store.js'
import {
  COPY_COLUMNS,
  COPY_USE_COLUMNS,
  copyValues,
  createCopyUseReader,
  formatStripe,
  toCopy,
} from './row-mapping.js'
import type { SqlReader, SqlTransaction, SqlValue } from './sql-database.js'

interface SameNode {
  /** Only copies on the node of this copy. */
  readonly sameNodeAs?: string
}

/** Copies that match, with their uses at `nowMs`, ordered by dataset, node, creation. */
export async function selectCopyUses(
  reader: SqlReader,
  filter: CopyFilter & SameNode,
  nowMs: number,
): Promise<readonly CopyUse[]> {
  const { where, parameters } = copyConditions(filter)
  return reader.map(
    `SELECT ${COPY_USE_COLUMNS} FROM copies ${where} ORDER BY dataset, node, created_at_ms, copy_id`,
    [nowMs, nowMs, ...parameters],
    createCopyUseReader(),
  )
}

/** Plans inside the transaction, so what is marked is idle at this very moment. */
export async function beginEvicting(
  transaction: SqlTransaction,
  node: string,
  decide: (copies: readonly CopyUse[]) => EvictionPlan,
  task: string | null,
  nowMs: number,
): Promise<EvictionPlan> {
  const plan = decide(await selectCopyUses(transaction, { node }, nowMs))
  markEvicting(transaction, plan.victims, task, nowMs)
  return plan
}

/** Takes the victims of a plan made in this transaction out of use. Their files may go from now on. */
export function markEvicting(
  transaction: SqlTransaction,
  victims: readonly Victim[],
  task: string | null,
  nowMs: number,
): void {
  for (const { copy, reason } of victims) {
    transaction.post('DELETE FROM leases WHERE copy_id = ?', [copy.copyId])
    transaction.post(`UPDATE copies SET state = 'evicting' WHERE copy_id = ?`, [copy.copyId])
    writeEvent(transaction, {
      atMs: nowMs,
      kind: 'evicted',
      node: copy.node,
      dataset: copy.dataset,
      copyId: copy.copyId,
      task,
      reason,
      detail: { version: copy.version, chargedBytes: copy.chargedBytes, lastUsedAtMs: copy.lastUsedAtMs },
    })
  }
}

export async function changeLock(
  transaction: SqlTransaction,
  filter: CopyFilter,
  lock: CopyLock | null,
  nowMs: number,
): Promise<readonly Copy[]> {
  const { where, parameters } = copyConditions(filter)
  const rows = await transaction.all(
    `SELECT * FROM copies ${where} ORDER BY dataset, node, created_at_ms`,
    parameters,
  )
  const copies = rows.map(toCopy).filter((copy) => copy.state !== 'evicting')
  for (const copy of copies) {
    if ((copy.lock === null) === (lock === null)) continue
    transaction.post('UPDATE copies SET lock_state = ? WHERE copy_id = ?', [
      lock && JSON.stringify(lock),
      copy.copyId,
    ])
    writeEvent(transaction, {
      atMs: nowMs,
      kind: lock ? 'locked' : 'unlocked',
      node: copy.node,
      dataset: copy.dataset,
      copyId: copy.copyId,
      task: null,
      reason: lock ? `${lock.by}: ${lock.reason}` : 'unlocked',
      detail: {},
    })
  }
  return copies.map((copy) => ({ ...copy, lock: lock && (copy.lock ?? lock) }))
}

export async function insertAdopted(
  transaction: SqlTransaction,
  copy: Copy,
  nowMs: number,
): Promise<boolean> {
  // One that is being staged will be ready under this version too, and there can only be one.
  const staged = await transaction.get(
    `SELECT 1 AS found FROM copies WHERE dataset = ? AND node = ? AND version = ? AND state = 'staging'
      AND coalesce(stripe, '') = ?`,
    [copy.dataset, copy.node, copy.version, formatStripe(copy.stripe) ?? ''],
  )
  if (staged) return false
  const places = copyValues(copy).map(() => '?')
  const added = await transaction.run(
    `INSERT INTO copies (${COPY_COLUMNS}) VALUES (${places.join(', ')}) ON CONFLICT DO NOTHING`,
    copyValues(copy),
  )
  if (added === 0) return false
  writeEvent(transaction, {
    atMs: nowMs,
    kind: 'adopted',
    node: copy.node,
    dataset: copy.dataset,
    copyId: copy.copyId,
    task: null,
    reason: `found on disk at ${copy.path}`,
    detail: { version: copy.version },
  })
  return true
}

export async function forgetReady(
  transaction: SqlTransaction,
  copyIds: readonly string[],
  reason: string,
  nowMs: number,
): Promise<number> {
  let forgotten = 0
  for (const copyId of copyIds) {
    const row = await transaction.get(`SELECT * FROM copies WHERE copy_id = ? AND state = 'ready'`, [copyId])
    if (!row) continue
    const copy = toCopy(row)
    forgotten += await transaction.run('DELETE FROM copies WHERE copy_id = ?', [copyId])
    writeEvent(transaction, {
      atMs: nowMs,
      kind: 'forgotten',
      node: copy.node,
      dataset: copy.dataset,
      copyId,
      task: null,
      reason,
      detail: { version: copy.version, path: copy.path },
    })
  }
  return forgotten
}

export async function forgetWholeNode(
  transaction: SqlTransaction,
  node: string,
  reason: string,
  nowMs: number,
): Promise<readonly Copy[]> {
  const copies = (await transaction.all('SELECT * FROM copies WHERE node = ?', [node])).map(toCopy)
  for (const copy of copies) {
    transaction.post('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
    writeEvent(transaction, {
      atMs: nowMs,
      kind: 'forgotten',
      node,
      dataset: copy.dataset,
      copyId: copy.copyId,
      task: null,
      reason,
      detail: { version: copy.version, path: copy.path },
    })
  }
  transaction.post('DELETE FROM nodes WHERE node = ?', [node])
  return copies
}

function copyConditions(filter: CopyFilter & SameNode): { where: string; parameters: readonly SqlValue[] } {
  const given: [string, readonly SqlValue[]][] = []
  if (filter.dataset !== undefined) given.push(['dataset = ?', [filter.dataset]])
  if (filter.node !== undefined) given.push(['node = ?', [filter.node]])
  if (filter.sameNodeAs !== undefined)
    given.push(['node = (SELECT node FROM copies WHERE copy_id = ?)', [filter.sameNodeAs]])
  if (filter.copyId !== undefined) given.push(['copy_id = ?', [filter.copyId]])
  if (filter.states !== undefined)
    given.push([`state IN (${filter.states.map(() => '?').join(', ')})`, filter.states])
  return {
    where: given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : '',
    parameters: given.flatMap(([, values]) => values),
  }
}
