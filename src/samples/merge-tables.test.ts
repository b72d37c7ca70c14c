import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder, writeSamples } from '../testing/sample-folder.js'
import { indexSamples } from './index-samples.js'
import { mergeTables } from './merge-tables.js'
import type { SampleFormat } from './sample-encoding.js'
import { type SampleRow, tableFiles } from './sample-table.js'
import { SampleTableBuilder } from './sample-table-builder.js'

function buildSampleTable(format: SampleFormat, paths: readonly string[], rows: readonly SampleRow[]) {
  const samples = new SampleTableBuilder()
  for (const row of rows) samples.add(row)
  return samples.build(tableFiles({ format }, paths))
}

test('tables of stripes merge into the table of one machine, each sample on the node it came from', async (context) => {
  const folder = makeTestFolder(context)
  const options = { cacheFolder: join(folder, 'cache') }
  writeSamples(join(folder, 'all'), 50, (id) => 100 + id)
  const whole = (await indexSamples(join(folder, 'all'), options)).table
  const paths = Array.from({ length: whole.fileCount }, (_, file) => whole.fileName(file))
  for (const [rank, path] of paths.entries()) {
    const to = join(folder, `stripe-${rank % 3}`, path)
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(join(folder, 'all', path), to)
  }
  assert.equal(readdirSync(folder).length, 5)
  const parts = await Promise.all(
    [0, 1, 2].map((index) => indexSamples(join(folder, `stripe-${index}`), options)),
  )
  const { table, placement } = mergeTables(parts.map((part) => part.table))
  assert.equal(table.fingerprint, whole.fingerprint)
  assert.deepEqual(Buffer.from(table.bytes), Buffer.from(whole.bytes))
  assert.deepEqual(
    [...placement],
    paths.map((_, rank) => rank % 3),
  )
})

const row = (name: string) => ({ name, file: 0, offset: 0, length: 1, crc32: 1 })

test('a node without samples keeps its number', () => {
  const { placement } = mergeTables([undefined, buildSampleTable('file', ['x'], [row('x')])])
  assert.deepEqual([...placement], [1])
})

test('tables of different kinds, and none at all, are refused', () => {
  const file = buildSampleTable('file', ['x'], [row('x')])
  const shard = buildSampleTable('tar', ['y.tar'], [row('y')])
  assert.throws(() => mergeTables([file, shard]), { code: 'FEED_STATE_MISMATCH' })
  assert.throws(() => mergeTables([undefined]), { code: 'SOURCE_EMPTY' })
})
