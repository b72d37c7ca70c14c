// A record of SQLite with more in it than anybody would stage for a benchmark: rows are put in by SQL.
import Database from 'better-sqlite3'
import { openSqliteRecord } from '../../../dist/records/sqlite/record-store.js'

const HOUR_MS = 3_600_000
const DISK = JSON.stringify({ capacityBytes: 2e12, freeBytes: 1e12, inodesTotal: 1e8, inodesFree: 9e7 })

/** `nodes` × `datasets` ready copies; `isLeased`: with a lease on every third copy and an event for each. */
export async function fillRecord(path, { nodes, datasets, isLeased }) {
  await (await openSqliteRecord(path)).close()
  const database = new Database(path)
  const insertNode = inserter(database, 'nodes', 'node, cache_root, policy, disk, seen_at_ms')
  const insertCopy = inserter(
    database,
    'copies',
    `copy_id, dataset, node, version, state, origin, source, directory, path, charged_bytes, charged_inodes,
    written_bytes, files, content_bytes, last_task, last_used_at_ms, created_at_ms, ready_at_ms`,
  )
  const insertLease = leaseInserter(database)
  const insertEvent = eventInserter(database)
  const at = Date.now() - HOUR_MS
  database.transaction(() => {
    for (let n = 0; n < nodes; n++) {
      const node = `gpu-${String(n + 1).padStart(4, '0')}`
      insertNode.run(node, '/nvme/dsc', '{"maxPercent":80}', DISK, Date.now())
      for (let d = 0; d < datasets; d++) {
        const [id, dataset, task] = [`copy-${n}-${d}`, `data-${d}`, `slurm:${n}`]
        const source = JSON.stringify({
          name: dataset,
          source: 's3://bucket/data/',
          include: [],
          exclude: [],
        })
        const place = `/nvme/dsc/copies/${dataset}/${id}`
        const sizes = [1e9, 1000, 1e9, 1000, 1e9]
        const version = `${d}`.padStart(64, 'a')
        insertCopy.run(
          id,
          dataset,
          node,
          version,
          'ready',
          'store',
          source,
          place,
          place,
          ...sizes,
          task,
          at,
          at,
          at,
        )
        if (!isLeased) continue
        if ((n + d) % 3 === 0)
          insertLease.run(id, id, 'use', task, '{"kind":"ttl"}', at, at, at + 25 * HOUR_MS, node)
        insertEvent.run(
          at,
          'staged',
          node,
          dataset,
          id,
          task,
          'at the request of the job',
          '{"bytes":1000000000}',
        )
      }
    }
  })()
  database.close()
}

export function eventInserter(database) {
  return inserter(database, 'events', 'at_ms, kind, node, dataset, copy_id, task, reason, detail')
}

export function leaseInserter(database) {
  return inserter(
    database,
    'leases',
    'lease_id, copy_id, purpose, task, holder, created_at_ms, renewed_at_ms, expires_at_ms, node',
  )
}

export function inserter(database, name, columns) {
  const marks = columns.split(',').map(() => '?')
  return database.prepare(`INSERT INTO ${name} (${columns}) VALUES (${marks.join(', ')})`)
}
