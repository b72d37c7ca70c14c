import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, writeTree } from '../testing/world.js'

const PAGE_BYTES = 4096

test('a copy that the record does not know, with a damaged manifest, is in nobody’s way', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(join(world.directory, 'source'), { 'a.txt': 'alpha' })
  await world.configure({ datasets: { letters: { source: `file://${join(world.directory, 'source')}/` } } })
  const first = await succeeds(world.dsc('prepare', 'letters', '--task', 'one'))
  for (const suffix of ['', '-wal', '-shm']) rmSync(world.recordPath + suffix, { force: true })
  const manifest = join(first.stdout.trimEnd(), '..', 'manifest.db')
  const bytes = readFileSync(manifest)
  rmSync(manifest)
  writeFileSync(manifest, bytes.fill(0xff, PAGE_BYTES))
  await succeeds(world.dsc('prepare', 'letters', '--task', 'two'))
  const cleaned = await succeeds(world.dsc('cleanup'))
  assert.match(cleaned.stdout, /its manifest cannot be read/)
})
