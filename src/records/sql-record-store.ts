import { isLogged } from '../log/log.js'
import { changeLock } from './change/change-lock.js'
import { chargeReadyCopy } from './change/charge-copy.js'
import { endDeadLeases, releaseUseLeases } from './change/end-leases.js'
import { forgetReady, forgetWholeNode } from './change/forget-copies.js'
import { grantLease, handOver, leaseDurability, leaseReadyCopy } from './change/grant-lease.js'
import { insertAdopted, insertReturned } from './change/insert-copy.js'
import { keepLayout } from './change/keep-layout.js'
import { beginEvicting } from './change/mark-evicting.js'
import { changeStripeNodes } from './change/move-stripes.js'
import type { RecordWrite } from './change/record-write.js'
import { renameNode, upsertNode } from './change/save-node.js'
import { writeEvent } from './change/write-event.js'
import type { ReleaseFilter } from './contract/record-requests.js'
import type { RecordStore } from './contract/record-store.js'
import { logStatements } from './database/log-statements.js'
import { toCopy, toDataset, toNode } from './database/row-mapping.js'
import type { Durability, SqlDatabase, WriteScope } from './database/sql-database.js'
import { selectCopyUses } from './select/select-copy-uses.js'
import { selectEvents } from './select/select-events.js'
import { selectLeases } from './select/select-leases.js'
import { selectNewestDatasets } from './select/select-newest-datasets.js'
import { selectPlaces } from './select/select-places.js'
import { sumCopiesInRecord } from './select/sum-copies.js'
import { admitCopy } from './staging/admit-copy.js'
import { endStaging, markCopyReady, renewStaging } from './staging/end-staging.js'
import { joinOrReserve } from './staging/join-or-reserve.js'

/** The record over any engine that speaks the SQL of `schema.ts`. Closing it closes the database. */
export function createSqlRecordStore(engine: SqlDatabase): RecordStore {
  const database = isLogged('debug') ? logStatements(engine) : engine
  return {
    location: database.location,
    isReadOnly: database.isReadOnly ?? false,
    nowMs: () => database.nowMs(),
    waitForChange: (wait) => database.waitForChange(wait),
    findHindrance: async () => database.findHindrance?.(),
    close: () => database.close(),
    ...keepDatasets(database),
    ...keepNodes(database),
    ...keepCopies(database),
    ...keepStagings(database),
    ...keepLeases(database),
    ...keepHistory(database),
  }
}

function keepDatasets(
  database: SqlDatabase,
): Pick<RecordStore, 'saveDataset' | 'findDataset' | 'listDatasets' | 'removeDataset'> {
  return {
    saveDataset: (dataset, nowMs) =>
      database.write('durable', 'rows', async (transaction) => {
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
      database.write('durable', 'all', async (transaction) => {
        const copies = (await transaction.all('SELECT * FROM copies WHERE dataset = ?', [name])).map(toCopy)
        if (copies.length === 0) await transaction.run('DELETE FROM datasets WHERE name = ?', [name])
        return copies
      }),
  }
}

function keepNodes(
  database: SqlDatabase,
): Pick<RecordStore, 'saveNode' | 'claimNode' | 'renameNode' | 'listNodes' | 'forgetNode'> {
  const write = at(database)
  return {
    saveNode: (node) => database.write('quick', 'rows', (transaction) => upsertNode(transaction, node)),
    claimNode: (node, identity) =>
      database.write('durable', { node }, async (transaction) => {
        const text = identity === undefined ? null : JSON.stringify(identity)
        return (await transaction.run('UPDATE nodes SET identity = ? WHERE node = ?', [text, node])) > 0
      }),
    renameNode: (from, to) =>
      database.write('durable', 'all', (transaction) => renameNode(transaction, { from, to })),
    listNodes: async () => (await database.all('SELECT * FROM nodes ORDER BY node')).map(toNode),
    forgetNode: (node, reason, nowMs) =>
      write({ scope: { node }, nowMs }, (change) => forgetWholeNode(change, node, reason)),
  }
}

function keepCopies(
  database: SqlDatabase,
): Pick<
  RecordStore,
  | 'listCopies'
  | 'sumCopies'
  | 'listNewestDatasets'
  | 'listPlaces'
  | 'beginEviction'
  | 'finishEviction'
  | 'chargeCopy'
  | 'setLock'
  | 'addAdopted'
  | 'returnCopy'
  | 'forgetCopies'
  | 'moveStripes'
> {
  const write = at(database)
  return {
    listCopies: (filter, nowMs) => selectCopyUses(database, filter, nowMs),
    sumCopies: (filter, nowMs) => sumCopiesInRecord(database, filter, nowMs),
    listPlaces: (node) => selectPlaces(database, node),
    listNewestDatasets: (filter, limit) => selectNewestDatasets(database, filter, limit),
    beginEviction: (request, decide, nowMs) =>
      write({ scope: { node: request.node }, nowMs }, (change) => beginEvicting(change, request, decide)),
    chargeCopy: (request, decide, nowMs) =>
      write({ scope: { copyId: request.copyId }, nowMs }, (change) =>
        chargeReadyCopy(change, request, decide),
      ),
    finishEviction: (copyId) =>
      database.write('durable', { copyId }, async (transaction) => {
        const evicting = `FROM copies WHERE copy_id = ? AND state = 'evicting'`
        const row = await transaction.get(`SELECT * ${evicting}`, [copyId])
        if (row) await keepLayout(transaction, toCopy(row))
        return (await transaction.run(`DELETE ${evicting}`, [copyId])) > 0
      }),
    setLock: (filter, lock, nowMs, by) =>
      write({ scope: filter.node === undefined ? 'all' : { node: filter.node }, nowMs }, (change) =>
        changeLock(change, filter, { lock, by }),
      ),
    addAdopted: (copy, nowMs) =>
      write({ scope: { node: copy.node }, nowMs }, (change) => insertAdopted(change, copy)),
    returnCopy: (returned, decide, nowMs) =>
      write({ scope: { node: returned.copy.node }, nowMs }, (change) =>
        insertReturned(change, returned, decide),
      ),
    forgetCopies: (copyIds, reason, nowMs) =>
      write({ scope: 'all', nowMs }, (change) => forgetReady(change, copyIds, reason)),
    moveStripes: (move, nowMs) => write({ scope: 'all', nowMs }, (change) => changeStripeNodes(change, move)),
  }
}

function keepStagings(
  database: SqlDatabase,
): Pick<RecordStore, 'joinOrReserve' | 'admit' | 'reportProgress' | 'markReady' | 'endStaging'> {
  const write = at(database)
  return {
    joinOrReserve: (request, nowMs) =>
      write({ scope: { node: request.node }, nowMs }, (change) => joinOrReserve(change, request)),
    admit: (request, decide, nowMs) =>
      write({ scope: { copyId: request.copyId }, nowMs }, (change) => admitCopy(change, request, decide)),
    reportProgress: (progress, nowMs) =>
      write({ scope: { copyId: progress.copyId }, durability: 'quick', nowMs }, (change) =>
        renewStaging(change, progress),
      ),
    markReady: (published, nowMs) =>
      write({ scope: { copyId: published.copyId }, nowMs }, (change) => markCopyReady(change, published)),
    endStaging: (ended, nowMs) =>
      write({ scope: { copyId: ended.copyId }, nowMs }, (change) => endStaging(change, ended)),
  }
}

function keepLeases(
  database: SqlDatabase,
): Pick<
  RecordStore,
  'listLeases' | 'leaseReady' | 'leaseCopy' | 'releaseUses' | 'renewLease' | 'handOverLease' | 'expireLeases'
> {
  const write = at(database)
  return {
    listLeases: (filter) => selectLeases(database, filter),
    leaseReady: (request, nowMs) =>
      write({ scope: { node: request.node }, durability: leaseDurability(request.lease), nowMs }, (change) =>
        leaseReadyCopy(change, request),
      ),
    leaseCopy: ({ copyId, purpose, lease }, nowMs) =>
      write({ scope: { copyId }, durability: leaseDurability(lease), nowMs }, async (change) => {
        const sql = `SELECT * FROM copies WHERE copy_id = ? AND state = 'ready'`
        const row = await change.transaction.get(sql, [copyId])
        return row && grantLease(change, { copy: toCopy(row), purpose, lease })
      }),
    releaseUses: (filter, nowMs, by) =>
      write({ scope: releaseScope(filter), nowMs }, (change) => releaseUseLeases(change, filter, by)),
    renewLease: (leaseId, expiresAtMs, nowMs) =>
      database.write('quick', { leaseId }, async (transaction) => {
        const sql = 'UPDATE leases SET renewed_at_ms = ?, expires_at_ms = ? WHERE lease_id = ?'
        return (await transaction.run(sql, [nowMs, expiresAtMs, leaseId])) > 0
      }),
    handOverLease: (leaseId, holder, nowMs) =>
      write({ scope: { leaseId }, durability: 'quick', nowMs }, (change) =>
        handOver(change, leaseId, holder),
      ),
    expireLeases: (dead, nowMs) => write({ scope: 'all', nowMs }, (change) => endDeadLeases(change, dead)),
  }
}

function keepHistory(database: SqlDatabase): Pick<RecordStore, 'addEvent' | 'listEvents' | 'pruneEvents'> {
  return {
    addEvent: (event) =>
      database.write('quick', 'rows', async (transaction) => writeEvent(transaction, event)),
    listEvents: (filter) => selectEvents(database, filter),
    pruneEvents: async (beforeMs, limit) => {
      const pruned = await database.write('quick', 'rows', (transaction) =>
        transaction.run(
          'DELETE FROM events WHERE sequence IN (SELECT sequence FROM events WHERE at_ms < ? ORDER BY at_ms LIMIT ?)',
          [beforeMs, limit],
        ),
      )
      await database.giveBackRoom?.()
      return pruned
    },
  }
}

/** Binds writes to a database: each takes a time, and is durable by default. */
function at(database: SqlDatabase) {
  return <T>(
    how: { readonly scope: WriteScope; readonly durability?: Durability; readonly nowMs: number },
    work: (change: RecordWrite) => Promise<T>,
  ): Promise<T> =>
    database.write(how.durability ?? 'durable', how.scope, (transaction) =>
      work({ transaction, nowMs: how.nowMs }),
    )
}

/** A release by task alone may concern any node. */
function releaseScope(filter: ReleaseFilter): WriteScope {
  if (filter.node !== undefined) return { node: filter.node }
  return filter.leaseId === undefined ? 'all' : { leaseId: filter.leaseId }
}
