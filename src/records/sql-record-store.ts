import { isLogged } from '../log/log.js'
import type { Admission } from '../policy/plan-admission.js'
import { changeLock } from './change/change-lock.js'
import { endDeadLeases, releaseUseLeases } from './change/end-leases.js'
import { forgetReady, forgetWholeNode } from './change/forget-copies.js'
import { grantLease, handOver, leaseDurability, leaseReadyCopy } from './change/grant-lease.js'
import { insertAdopted, insertReturned } from './change/insert-copy.js'
import { keepLayout } from './change/keep-layout.js'
import { beginEvicting, markEvicting } from './change/mark-evicting.js'
import { changeStripeNodes } from './change/move-stripes.js'
import type { RecordWrite } from './change/record-write.js'
import { renameNode, upsertNode } from './change/save-node.js'
import { writeEvent } from './change/write-event.js'
import type { ChargeRequest, ReleaseFilter } from './contract/record-requests.js'
import type { CopyPlace, Decide, RecordStore } from './contract/record-store.js'
import { logStatements } from './database/log-statements.js'
import { toCopy, toDataset, toNode } from './database/row-mapping.js'
import type { Durability, SqlDatabase, SqlReader, SqlRow, WriteScope } from './database/sql-database.js'
import { decideOnNode } from './select/decide-on-node.js'
import { foreseeOrder } from './select/foresee-order.js'
import { selectCopyUses } from './select/select-copy-uses.js'
import { selectEvents } from './select/select-events.js'
import { selectLeases } from './select/select-leases.js'
import { selectNewestDatasets } from './select/select-newest-datasets.js'
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

function keepDatasets(database: SqlDatabase) {
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
  } satisfies Partial<RecordStore>
}

function keepNodes(database: SqlDatabase) {
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
  } satisfies Partial<RecordStore>
}

function keepCopies(database: SqlDatabase) {
  const write = at(database)
  return {
    listCopies: (filter, nowMs) => selectCopyUses(database, filter, nowMs),
    sumCopies: (filter, nowMs) => sumCopiesInRecord(database, filter, nowMs),
    listPlaces: (node) => selectPlaces(database, node),
    listNewestDatasets: (filter, limit) =>
      database.read((snapshot) => selectNewestDatasets(snapshot, filter, limit)),
    foreseeEviction: ({ node, only }, decide, nowMs) =>
      database.read((snapshot) => decideOnNode(snapshot, { node, only, nowMs }, decide)),
    foreseeOrder: (request, nowMs) => database.read((snapshot) => foreseeOrder(snapshot, request, nowMs)),
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
  } satisfies Partial<RecordStore>
}

function keepStagings(database: SqlDatabase) {
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
  } satisfies Partial<RecordStore>
}

function keepLeases(database: SqlDatabase) {
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
    noteReading: (leaseId, nowMs) =>
      database.write('quick', { leaseId }, async (transaction) => {
        const sql = 'UPDATE leases SET read_at_ms = coalesce(read_at_ms, ?) WHERE lease_id = ?'
        return (await transaction.run(sql, [nowMs, leaseId])) > 0
      }),
    handOverLease: (leaseId, holder, nowMs) =>
      write({ scope: { leaseId }, durability: 'quick', nowMs }, (change) =>
        handOver(change, leaseId, holder),
      ),
    expireLeases: (dead, nowMs) => write({ scope: 'all', nowMs }, (change) => endDeadLeases(change, dead)),
  } satisfies Partial<RecordStore>
}

function keepHistory(database: SqlDatabase) {
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
  } satisfies Partial<RecordStore>
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

/** Places of a node's copies. */
function selectPlaces(reader: SqlReader, node: string): Promise<readonly CopyPlace[]> {
  return reader.map(
    `SELECT dataset, path, CASE WHEN state = 'ready' AND origin <> 'local' AND copy_id NOT IN
        (SELECT copy_id FROM leases WHERE purpose = 'transfer') THEN 1 ELSE 0 END AS plain
      FROM copies WHERE node = ?`,
    [node],
    toPlace,
  )
}

function toPlace({ dataset, path, plain }: SqlRow): CopyPlace {
  return { dataset: dataset as string, path: path as string, isPlain: plain === 1 }
}

/** See `RecordStore.chargeCopy`. */
async function chargeReadyCopy(
  write: RecordWrite,
  { copyId, chargedBytes, chargedInodes, task }: ChargeRequest,
  decide: Decide<Admission>,
): ReturnType<RecordStore['chargeCopy']> {
  const { transaction, nowMs } = write
  const row = await transaction.get(`SELECT node FROM copies WHERE copy_id = ? AND state = 'ready'`, [copyId])
  if (row === undefined) return { outcome: 'gone' }
  const admission = await decideOnNode(transaction, { node: String(row.node), nowMs }, decide)
  if (admission.outcome !== 'admit') return admission
  markEvicting(write, admission.plan.victims, { task })
  transaction.post(
    'UPDATE copies SET charged_bytes = ?, charged_inodes = ?, written_bytes = ? WHERE copy_id = ?',
    [chargedBytes, chargedInodes, chargedBytes, copyId],
  )
  return admission
}
