import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import type { LeasePurpose } from '../../model/lease.js'
import { exampleCopy, exampleLease } from '../../testing/example-copies.js'
import { handOver, leaseReadyCopy } from '../change/grant-lease.js'
import type { SqlTransaction } from '../database/sql-database.js'
import { SQLITE_MIGRATIONS } from '../sqlite/sqlite-database.js'
import { decideOnNode } from './decide-on-node.js'
import { foreseeOrder } from './foresee-order.js'
import { selectCopyUses } from './select-copy-uses.js'
import { selectEvents } from './select-events.js'
import { selectLeases } from './select-leases.js'
import { selectNewestDatasets } from './select-newest-datasets.js'

for (const { of, filter } of [
  { of: 'all events', filter: {} },
  { of: 'a node', filter: { node: 'gpu-01' } },
  { of: 'a dataset', filter: { dataset: 'flowers' } },
])
  test(`a day of ${of} is found in an index: older events are not read`, async (t) => {
    const { database, steps } = explainQueries(t)
    await selectEvents(database, { ...filter, kinds: ['staged'], sinceMs: 1, limit: 20_000 })
    const [walk, ...search] = steps
    assert.match(walk!, /^SEARCH events USING .*(rowid>\?|sequence>\?)/)
    assert.ok(
      search.includes('SEARCH events USING COVERING INDEX events_by_time (at_ms>?)'),
      steps.join('\n'),
    )
  })

for (const { of, filter, step } of [
  { of: 'on all nodes', filter: {}, step: 'SCAN copies USING INDEX copies_moving' },
  {
    of: 'of a dataset',
    filter: { dataset: 'flowers' },
    step: 'SEARCH copies USING INDEX copies_moving (dataset=?)',
  },
  {
    of: 'on a node',
    filter: { node: 'gpu-01' },
    step: 'SEARCH copies USING INDEX copies_moving_by_node (node=?)',
  },
])
  test(`copies that come or go ${of} are found among a million in an index`, async (t) => {
    const { database, steps } = explainQueries(t)
    await selectCopyUses(database, { ...filter, states: ['reserved', 'staging', 'evicting'] }, 1)
    assert.equal(steps[0], step)
  })

for (const { filter, sorted } of [
  { filter: { sourceUrl: 's3://bucket/flowers' }, sorted: 'LAST 4 TERMS OF ORDER BY' }, // of equal times
  { filter: { isOfHub: true }, sorted: 'ORDER BY' },
] as const)
  test(`the newest copies by ${Object.keys(filter)} are found among a million of a node in an index`, async (t) => {
    const { database, steps } = explainQueries(t)
    const newest = { node: 'gpu-01', states: ['ready'], isNewestFirst: true, limit: 200 } as const
    await selectCopyUses(database, { ...filter, ...newest }, 1)
    assert.match(steps[0]!, /^SEARCH copies USING INDEX copies_by_source \(node=\? AND source_url/)
    assert.equal(steps.at(-1), `USE TEMP B-TREE FOR ${sorted}`)
  })

test('a ready copy of a dataset is found among a million copies of a node', async (t) => {
  const { database, steps } = explainQueries(t)
  const use = { dataset: 'flowers', node: 'gpu-01', lease: exampleLease('task-1') }
  await leaseReadyCopy({ transaction: database, nowMs: 1 }, use)
  assert.match(steps[0]!, /^SEARCH copies USING INDEX \S+ \((dataset=\? AND node|node=\? AND dataset)=\?\)$/)
})

test('the datasets that were used last are read in the order of an index', async (t) => {
  const { database, steps } = explainQueries(t)
  const all: SqlTransaction['all'] = async (sql, parameters) => {
    await database.all(sql, parameters)
    return [{ datasets: 2, dataset: 'flowers' }]
  }
  await selectNewestDatasets({ ...database, all }, {}, 1)
  const walks = steps.filter((step) => step.startsWith('SCAN copies'))
  assert.deepEqual(walks, [
    'SCAN copies USING COVERING INDEX copies_in_order', // counts
    'SCAN copies USING COVERING INDEX copies_by_use', // up to the limit
  ])
})

test('stripes are found among a million copies in an index', async (t) => {
  const { database, steps } = explainQueries(t)
  await selectCopyUses(database, { isStriped: true }, 1)
  assert.equal(steps[0], 'SCAN copies USING INDEX copies_striped')
})

for (const { purpose, step } of [
  { purpose: 'transfer', step: 'SCAN leases USING INDEX leases_of_transfers' },
  { purpose: 'use', step: 'SCAN leases USING INDEX leases_in_order' }, // most are of this kind
] as const satisfies readonly { purpose: LeasePurpose; step: string }[])
  test(`leases of purpose ${purpose} are read in the order of an index`, async (t) => {
    const { database, steps } = explainQueries(t)
    await selectLeases(database, { purpose })
    assert.equal(steps[0], step)
  })

for (const { filter, step } of [
  { filter: { node: 'gpu-01' }, step: 'SEARCH leases USING INDEX leases_by_node (node=?)' },
  {
    filter: { node: 'gpu-01', dataset: 'flowers' },
    step: 'SEARCH copies USING COVERING INDEX copies_in_order (dataset=? AND node=?)',
  },
])
  test(`leases of ${Object.keys(filter).join(' and ')} are found without a look at all copies`, async (t) => {
    const { database, steps } = explainQueries(t)
    await selectLeases(database, filter)
    assert.equal(steps[0], step)
    assert.deepEqual(
      steps.filter((each) => each.startsWith('SCAN')),
      [],
    )
  })

const SUMMED_UP = [
  'SEARCH copies USING INDEX copies_by_node (node=?)', // up to the limit
  'SEARCH copies USING INDEX copies_moving_by_node (node=?)',
  'SEARCH copies USING INDEX copies_by_standing (node=?)',
  'SEARCH leases USING INDEX leases_by_node (node=?)',
  'SEARCH copies USING INDEX sqlite_autoindex_copies_1 (copy_id=?)',
]
for (const { needs, attempts, walks } of [
  { needs: 'no room', attempts: 1, walks: SUMMED_UP },
  {
    needs: 'room',
    attempts: 2,
    walks: [
      ...SUMMED_UP,
      'SEARCH copies USING INDEX copies_in_order (dataset=? AND node=?)',
      'SEARCH copies USING COVERING INDEX copies_by_node (node=?)',
      'SEARCH copies USING INDEX copies_idle_longest (node=?)',
      'SEARCH leases USING INDEX one_lease_per_holder (copy_id=?)',
    ],
  },
])
  test(`a decision that needs ${needs} on a node with a million copies walks indexes: few rows are read, none sorted`, async (t) => {
    const { database, steps } = explainQueries(t)
    const map: SqlTransaction['map'] = async (sql, parameters) => {
      await database.all(sql, parameters)
      return [exampleCopy('flowers')] as never[] // as many as are wanted
    }
    let asked = 0
    const decide = () => ({ isProvisional: ++asked < attempts })
    await decideOnNode({ ...database, map }, { node: 'gpu-01', nowMs: 1 }, decide, 1)
    assert.deepEqual(
      steps.filter((step) => /^(SCAN|SEARCH) (copies|leases) /.test(step)),
      walks,
    )
  })

test('the order of eviction on a node with a million copies is counted in indexes', async (t) => {
  const { database, steps } = explainQueries(t)
  const read: SqlTransaction['all'] = async (sql, parameters) => {
    await database.all(sql, parameters)
    return [{ copies: 0 }]
  }
  const map: SqlTransaction['map'] = async (sql, parameters) => {
    await database.all(sql, parameters)
    return [exampleCopy('flowers')] as never[]
  }
  await foreseeOrder({ ...database, all: read, map }, { node: 'gpu-01', dataset: 'flowers', limit: 5 }, 1)
  const counts = steps.filter(
    (step) => step.includes('copies_idle_longest') || /^SCAN (copies|leases)/.test(step),
  )
  assert.deepEqual(counts, [
    'SEARCH copies USING INDEX copies_idle_longest (node=?)', // up to the limit
    'SEARCH copies USING INDEX copies_idle_longest (node=? AND last_used_at_ms<?)', // before the copy
    'SEARCH copies USING INDEX copies_idle_longest (node=? AND last_used_at_ms<?)', // all
    'SEARCH copies USING INDEX copies_idle_longest (node=? AND last_used_at_ms=?)',
  ])
})

test('handing a lease over looks at the leases of its copy alone', async (t) => {
  const { database, steps } = explainQueries(t)
  await handOver({ transaction: database, nowMs: 1 }, 'lease', { kind: 'ttl' })
  const scans = steps.filter((step) => step.startsWith('SCAN leases'))
  assert.deepEqual(scans, [], steps.join('\n'))
})

/** An empty record that explains statements instead of running them; `steps`: what the statements so far would do. */
function explainQueries(t: TestContext): { database: SqlTransaction; steps: readonly string[] } {
  const database = new Database(':memory:')
  t.after(() => database.close())
  for (const statement of SQLITE_MIGRATIONS.flat()) database.exec(statement)
  const steps: string[] = []
  const explain = (sql: string, parameters: readonly unknown[] = []) => {
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters)
    steps.push(...(rows as { detail: string }[]).map(({ detail }) => detail))
  }
  const read = async (sql: string, parameters?: readonly unknown[]) => {
    explain(sql, parameters)
    return []
  }
  const get = async (sql: string, parameters?: readonly unknown[]) => void explain(sql, parameters)
  const run = async (sql: string, parameters?: readonly unknown[]) => {
    explain(sql, parameters)
    return 0
  }
  return { database: { all: read, map: read, get, run, post: explain }, steps }
}
