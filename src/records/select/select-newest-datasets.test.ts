import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareText } from '../../model/compare-text.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { insertCopy } from '../change/insert-copy.js'
import { openSqliteDatabase } from '../sqlite/sqlite-database.js'
import { selectNewestDatasets } from './select-newest-datasets.js'

const seed = Number(process.env.DSC_TEST_SEED ?? Date.now() % 1_000_000_007)
const drawn = fc.array(
  fc.record({
    dataset: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    usedAtMs: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 30 },
)

test(`the datasets used last are those of all copies, however few are read (DSC_TEST_SEED=${seed})`, async (t) => {
  const database = await openSqliteDatabase(join(await temporaryDirectory(t), 'record.db'))
  t.after(() => database.close())
  const walks = { enough: 0, short: 0 }
  const holds = async (
    copies: typeof drawn extends fc.Arbitrary<infer Drawn> ? Drawn : never,
    limit: number,
  ) => {
    await database.write('quick', 'all', async (transaction) => {
      await transaction.run('DELETE FROM copies')
      for (const [index, { dataset, usedAtMs }] of copies.entries()) {
        const { referenceCount: _, isBeingStaged: __, ...copy } = exampleCopy(dataset)
        const changes = { copyId: `copy-${index}`, version: `v${index}`, lastUsedAtMs: usedAtMs }
        insertCopy(transaction, { ...copy, ...changes })
      }
    })
    const lastUse = new Map<string, number>()
    for (const { dataset, usedAtMs } of copies)
      lastUse.set(dataset, Math.max(usedAtMs, lastUse.get(dataset) ?? 0))
    const inOrder = [...lastUse].sort(([a, aMs], [b, bMs]) => bMs - aMs || compareText(a, b))
    const expected = { names: inOrder.map(([name]) => name).slice(0, limit), total: lastUse.size }
    let full = 0
    const find = database.read((snapshot) => {
      const all: typeof snapshot.all = (sql, parameters) => {
        full += Number(sql.startsWith('SELECT dataset'))
        return snapshot.all(sql, parameters)
      }
      return selectNewestDatasets({ ...snapshot, all }, {}, limit, [1, 3])
    })
    assert.deepEqual(await find, expected)
    if (lastUse.size > limit) walks[full === 0 ? 'enough' : 'short'] += 1
  }
  await fc.assert(fc.asyncProperty(drawn, fc.integer({ min: 1, max: 4 }), holds), { seed, numRuns: 200 })
  assert.ok(walks.enough > 0 && walks.short > 0, JSON.stringify(walks))
})
