import { setTimeout as sleep } from 'node:timers/promises'
import { writeEvent } from './event-writing.js'
import {
  beginEvicting,
  changeLock,
  forgetReady,
  forgetWholeNode,
  insertAdopted,
  selectCopyUses,
} from './evicting.js'
import {
  endDeadLeases,
  grantLease,
  handOver,
  leaseDurability,
  leaseReadyCopy,
  releaseUseLeases,
  selectLeases,
} from './leasing.js'
import { changeStripeNodes } from './moving-stripes.js'
import type { EventFilter, RecordStore, ReleaseFilter } from './record-store.js'
import { toCopy, toDataset, toEvent, toNode } from './row-mapping.js'
import type { SqlDatabase, SqlReader, SqlValue, WriteScope } from './sql-database.js'
import { admitCopy, endStagingOf, joinStaging, noteProgress, publishCopy } from './staging.js'

/** The record over any engine that speaks the SQL of `schema.ts`. Closing it closes the database. */
export function createSqlRecordStore(database: SqlDatabase): RecordStore {
  const { write } = database
  return {
    location: database.location,
    nowMs: () => database.nowMs(),
    waitForChange: async (wait) => {
      if (database.waitForChange) return database.waitForChange(wait)
      await sleep(wait.pollMs, undefined, wait.signal ? { signal: wait.signal } : {}).catch(() => {})
    },
    saveDataset: (dataset, nowMs) =>
      write('durable', 'rows', async (transaction) => {
        await transaction.run(
          `INSERT INTO datasets (name, definition, updated_at_ms) VALUES (?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, updated_at_ms = excluded.updated_at_ms`,
          [dataset.name, JSON.stringify(dataset), nowMs],
        )
      }),
    findDataset: async (name) => {
      const [row] = await database.all('SELECT * FROM datasets WHERE name = ?', [name])
      return row && toDataset(row)
    },
    listDatasets: async () => (await database.all('SELECT * FROM datasets ORDER BY name')).map(toDataset),
    removeDataset: (name) =>
      write('durable', 'all', async (transaction) => {
        const copies = (await transaction.all('SELECT * FROM copies WHERE dataset = ?', [name])).map(toCopy)
        if (copies.length === 0) await transaction.run('DELETE FROM datasets WHERE name = ?', [name])
        return copies
      }),
    saveNode: (node) =>
      write('quick', 'rows', async (transaction) => {
        await transaction.run(
          `INSERT INTO nodes (node, cache_root, policy, disk, seen_at_ms, agent) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (node) DO UPDATE SET cache_root = excluded.cache_root, policy = excluded.policy,
              disk = excluded.disk, seen_at_ms = excluded.seen_at_ms,
              agent = coalesce(excluded.agent, nodes.agent)`,
          [
            node.node,
            node.cacheRoot,
            JSON.stringify(node.policy),
            JSON.stringify(node.disk),
            node.seenAtMs,
            node.agent === undefined ? null : JSON.stringify(node.agent),
          ],
        )
      }),
    listNodes: async () => (await database.all('SELECT * FROM nodes ORDER BY node')).map(toNode),
    forgetNode: (node, reason, nowMs) =>
      write('durable', { node }, (transaction) => forgetWholeNode(transaction, node, reason, nowMs)),
    listCopies: (filter, nowMs) => selectCopyUses(database, filter, nowMs),
    listLeases: (filter) => selectLeases(database, filter),
    leaseReady: (request, nowMs) =>
      write(leaseDurability(request.lease), { node: request.node }, (transaction) =>
        leaseReadyCopy(transaction, request, nowMs),
      ),
    leaseCopy: (copyId, purpose, lease, nowMs) =>
      write(leaseDurability(lease), { copyId }, async (transaction) => {
        const row = await transaction.get(`SELECT * FROM copies WHERE copy_id = ? AND state = 'ready'`, [
          copyId,
        ])
        return row && grantLease(transaction, toCopy(row), purpose, lease, nowMs)
      }),
    joinStaging: (request, nowMs) =>
      write('durable', { node: request.node }, (transaction) => joinStaging(transaction, request, nowMs)),
    admit: (request, decide, nowMs) =>
      write('durable', { copyId: request.copyId }, (transaction) =>
        admitCopy(transaction, request, decide, nowMs),
      ),
    reportProgress: (progress, nowMs) =>
      write('quick', { copyId: progress.copyId }, (transaction) =>
        noteProgress(transaction, progress, nowMs),
      ),
    markReady: (published, nowMs) =>
      write('durable', { copyId: published.copyId }, (transaction) =>
        publishCopy(transaction, published, nowMs),
      ),
    endStaging: (ended, nowMs) =>
      write('durable', { copyId: ended.copyId }, (transaction) => endStagingOf(transaction, ended, nowMs)),
    beginEviction: (node, decide, task, nowMs) =>
      write('durable', { node }, (transaction) => beginEvicting(transaction, node, decide, task, nowMs)),
    finishEviction: (copyId) =>
      write('durable', { copyId }, async (transaction) => {
        const gone = await transaction.run(`DELETE FROM copies WHERE copy_id = ? AND state = 'evicting'`, [
          copyId,
        ])
        return gone > 0
      }),
    releaseUses: (filter, nowMs) =>
      write('durable', releaseScope(filter), (transaction) => releaseUseLeases(transaction, filter, nowMs)),
    renewLease: (leaseId, expiresAtMs, nowMs) =>
      write('quick', { leaseId }, async (transaction) => {
        const renewed = await transaction.run(
          'UPDATE leases SET renewed_at_ms = ?, expires_at_ms = ? WHERE lease_id = ?',
          [nowMs, expiresAtMs, leaseId],
        )
        return renewed > 0
      }),
    handOverLease: (leaseId, holder, nowMs) =>
      write('quick', { leaseId }, (transaction) => handOver(transaction, leaseId, holder, nowMs)),
    expireLeases: (dead, nowMs) =>
      write('durable', 'all', (transaction) => endDeadLeases(transaction, dead, nowMs)),
    setLock: (filter, lock, nowMs) =>
      write('durable', filter.node === undefined ? 'all' : { node: filter.node }, (transaction) =>
        changeLock(transaction, filter, lock, nowMs),
      ),
    addAdopted: (copy, nowMs) =>
      write('durable', { node: copy.node }, (transaction) => insertAdopted(transaction, copy, nowMs)),
    forgetCopies: (copyIds, reason, nowMs) =>
      write('durable', 'all', (transaction) => forgetReady(transaction, copyIds, reason, nowMs)),
    moveStripes: (move, nowMs) =>
      write('durable', 'all', (transaction) => changeStripeNodes(transaction, move, nowMs)),
    addEvent: (event) => write('quick', 'rows', async (transaction) => writeEvent(transaction, event)),
    listEvents: (filter) => selectEvents(database, filter),
    pruneEvents: (beforeMs) =>
      write('quick', 'rows', (transaction) =>
        transaction.run('DELETE FROM events WHERE at_ms < ?', [beforeMs]),
      ),
    close: () => database.close(),
  }
}

/** A release by task alone may concern any node. */
function releaseScope(filter: ReleaseFilter): WriteScope {
  if (filter.node !== undefined) return { node: filter.node }
  return filter.leaseId === undefined ? 'all' : { leaseId: filter.leaseId }
}

async function selectEvents(reader: SqlReader, filter: EventFilter) {
  const given: [string, readonly SqlValue[]][] = []
  if (filter.dataset !== undefined) given.push(['dataset = ?', [filter.dataset]])
  if (filter.node !== undefined) given.push(['node = ?', [filter.node]])
  if (filter.copyId !== undefined) given.push(['copy_id = ?', [filter.copyId]])
  if (filter.sinceMs !== undefined) given.push(['at_ms >= ?', [filter.sinceMs]])
  if (filter.kinds !== undefined)
    given.push([`kind IN (${filter.kinds.map(() => '?').join(', ')})`, filter.kinds])
  const where = given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : ''
  const rows = await reader.all(`SELECT * FROM events ${where} ORDER BY sequence DESC LIMIT ?`, [
    ...given.flatMap(([, values]) => values),
    filter.limit,
  ])
  return rows.map(toEvent)
}
