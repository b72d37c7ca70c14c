import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openFeed, readRow } from '../exports/index.js'
import { copyParquet } from '../testing/parquet-files.js'
import { makeWorld } from '../testing/world.js'

test('a dataset says in dsc.yaml what its files hold and which columns are read; a command may say otherwise', async (context) => {
  const world = await makeWorld(context, {})
  const at = (name: string) => join(world.directory, name)
  mkdirSync(at('source-of-lines'))
  writeFileSync(join(at('source-of-lines'), 'all.txt'), '{"id":0}\n{"id":1}\n{"id":2}\n')
  mkdirSync(at('source-of-records'))
  writeFileSync(join(at('source-of-records'), 'a.csv'), '1;"x\n2;y\n')
  copyParquet(at('source-of-rows'), { 'a.parquet': 'snappy.parquet' })
  await world.configure({
    datasets: {
      lines: { source: `file://${at('source-of-lines')}`, format: 'jsonl' },
      records: {
        source: `file://${at('source-of-records')}`,
        format: { csv: { delimiter: ';', quote: 'none', header: false } },
      },
      rows: { source: `file://${at('source-of-rows')}`, columns: ['text'] },
    },
  })
  const options = {
    batchSize: 1,
    ...world.ofProgram(),
    cacheFolder: at('samples'),
    last: 'pad',
  } as const
  const read = async (dataset: string, more: { as?: 'files'; columns?: readonly string[] } = {}) => {
    await using feed = await openFeed({ ...options, dataset, ...more })
    for await (const [sample] of feed) return { count: feed.stepsPerEpoch, data: Buffer.from(sample!.data) }
    throw new Error('no sample')
  }
  // The first feed of `lines` reads it while it comes, the second one when it is here.
  for (const round of ['arriving', 'here']) assert.equal((await read('lines')).count, 3, round)
  assert.equal((await read('lines', { as: 'files' })).count, 1)
  assert.deepEqual(Object.keys(readRow((await read('rows')).data)), ['text'])
  assert.deepEqual(Object.keys(readRow((await read('rows', { columns: ['i8'] })).data)), ['i8'])
  const index = await world.dsc('feed', 'index', 'lines', '--json')
  assert.equal(JSON.parse(index.stdout).formats[0].format, 'json')
  const records = await world.dsc('feed', 'index', 'records', '--json')
  assert.deepEqual(
    [JSON.parse(records.stdout).samples, JSON.parse(records.stdout).formats[0].columns],
    [2, ['column0', 'column1']],
  )
  const dialect = await world.dsc('dataset', 'show', 'records', '--json')
  assert.deepEqual(JSON.parse(dialect.stdout).dialect, { delimiter: ';', quote: 'none', header: false })
  const shown = await world.dsc('dataset', 'show', 'rows', '--json')
  assert.deepEqual(JSON.parse(shown.stdout).columns, ['text'])
  const wrong = { datasets: { lines: { source: `file://${at('source-of-lines')}`, format: 'lines' } } }
  await world.configure(wrong)
  const refused = await world.dsc('feed', 'index', 'lines')
  assert.match(refused.stderr, /one of files, shards, jsonl/)
})
