import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SourceFailure } from '../failure/source-failure.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openMemorySource } from '../testing/memory-source.js'
import { waitFor } from '../testing/world.js'
import { beginPreparing } from './begin-preparing.js'

/** Begins to prepare a dataset whose source answers its first `failures` listings with an error. */
async function begin(t: TestContext, { failures = 0 } = {}) {
  const source = openMemorySource({ rose: 'red' })
  let listings = 0
  const openSource = async () => ({
    ...source,
    async *list() {
      listings += 1
      if (listings <= failures) throw new SourceFailure('SOURCE_UNREACHABLE', 'away', { isTransient: false })
      yield* source.list({})
    },
  })
  let release = async () => {}
  t.after(() => release()) // before the record closes
  const { cache, makeDataset } = await openExampleCache(t, { openSource })
  const dataset = makeDataset('flowers')
  const context = exampleSurroundings(cache, t.signal, { datasets: [dataset] })
  const preparing = await beginPreparing(context, 'flowers', { isReadWhileComing: false })
  release = () => preparing.release()
  return {
    preparing,
    context,
    listLeases: () => cache.record.listLeases({ dataset: 'flowers', purpose: 'use' }),
  }
}

test('a copy is leased to this process until it is released', async (t) => {
  const { preparing, listLeases } = await begin(t)
  const copy = await preparing.prepared
  assert.equal(copy.state, 'ready')
  const [lease, ...others] = await listLeases()
  assert.deepEqual(others, [])
  assert.equal(lease?.holder.kind === 'process' && lease.holder.pid, process.pid)
  await preparing.release()
  await preparing.release()
  assert.deepEqual(await listLeases(), [])
})

test('a failure that may pass is the end, until told to keep trying', async (t) => {
  const { preparing, context } = await begin(t, { failures: 1 })
  await assert.rejects(preparing.prepared, { code: 'SOURCE_UNREACHABLE' })
  assert.deepEqual(context.told.notes, [])
})

test('told to keep trying, it retries and says so', async (t) => {
  const { preparing, context } = await begin(t, { failures: 1 })
  preparing.keepTrying()
  assert.equal((await preparing.prepared).state, 'ready')
  assert.equal(context.told.notes.length, 1)
  assert.match(context.told.notes[0]!, /^dsc: flowers: .*away.*; it is tried again$/)
})

test('a release ends the retries', async (t) => {
  const { preparing, context, listLeases } = await begin(t, { failures: Number.POSITIVE_INFINITY })
  preparing.keepTrying()
  await waitFor('a retry', () => context.told.notes.length > 0)
  await preparing.release()
  await assert.rejects(preparing.prepared)
  assert.deepEqual(await listLeases(), [])
})
