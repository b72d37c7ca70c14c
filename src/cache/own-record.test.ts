import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RecordLocation } from '../config/config.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { nameRecord } from './cache-identity.js'
import { identityFile } from './cache-layout.js'
import { openCacheRoot } from './open-cache-root.js'
import { followRecord, requireOwnRecord } from './own-record.js'

const SERVER: RecordLocation = { kind: 'postgres', url: 'postgres://dsc:secret@db/dsc' }

function fileAt(path: string): RecordLocation {
  return { kind: 'sqlite', url: `sqlite://${path}`, path }
}

/** A cache that a record beside it governs. */
async function makeCache(context: TestContext) {
  const directory = await temporaryDirectory(context)
  const root = join(directory, 'cache')
  mkdirSync(root)
  await openCacheRoot(root, { hasCopies: async () => false })
  const first = fileAt(join(directory, 'first.db'))
  writeFileSync(join(directory, 'first.db'), '')
  const open = (location: RecordLocation, isKnown = true) =>
    requireOwnRecord({ root, location, isKnown: async () => isKnown, describeRemedy: () => 'dsc init' })
  await open(first, false)
  return { directory, root, first, open }
}

const REFUSED = { code: 'CACHE_ROOT_INVALID', message: /is governed by the record .*first\.db, not by/ }

test('a second record is refused, whatever it knows, and the first goes on', async (context) => {
  const { directory, open, first } = await makeCache(context)
  await assert.rejects(open(fileAt(join(directory, 'second.db'))), REFUSED)
  await assert.rejects(open(SERVER), REFUSED)
  await open(first)
})

test('a record that was moved goes on where it is; an empty one in its place does not', async (context) => {
  const { directory, root, open } = await makeCache(context)
  rmSync(join(directory, 'first.db'))
  const moved = fileAt(join(directory, 'moved.db'))
  await assert.rejects(open(moved, false), REFUSED)
  await open(moved)
  assert.equal(JSON.parse(readFileSync(identityFile(root), 'utf8')).record, `sqlite://${directory}/moved.db`)
})

test('a copied record governs the cache from then on, and the old one no longer', async (context) => {
  const { root, open, first } = await makeCache(context)
  await followRecord(root, { from: first, to: SERVER })
  await open(SERVER)
  await open({ kind: 'postgres', url: 'postgres://dsc@db.example/dsc' })
  await assert.rejects(open(first), /is governed by the record postgres:\/\/db.example\/dsc, not by/)
})

test('the cache follows no record that does not govern it', async (context) => {
  const { directory, root, open, first } = await makeCache(context)
  await followRecord(root, { from: fileAt(join(directory, 'second.db')), to: SERVER })
  await open(first)
})

test('a record is named without its password, and by its place in the cache', () => {
  assert.doesNotMatch(nameRecord(SERVER, '/nvme/dsc'), /secret/)
  assert.equal(nameRecord(fileAt('/nvme/dsc/record.db'), '/nvme/dsc'), 'record.db')
})
