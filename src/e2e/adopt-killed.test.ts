import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

const COPIES = 'SELECT dataset, state, origin, source, path, lock_state FROM copies'

async function makeFolder(world: World): Promise<string> {
  const folder = join(world.directory, 'found')
  await writeTree(folder, { 'a.txt': 'the only copy', 'sub/b.txt': 'of all this' })
  return folder
}

/** As if dsc had been killed after it published and before it told the record. */
function forgetInRecord(world: World): void {
  const database = new Database(world.recordPath)
  database.exec('DELETE FROM copies')
  database.close()
}

test('a folder whose adoption was killed comes back locked: nothing may delete the only files', async (context) => {
  const world = await makeWorld(context, {})
  const folder = await makeFolder(world)
  assert.equal((await world.dsc('adopt', folder, '--name', 'found')).code, 0)
  const [adopted] = world.query<{ source: null; lock_state: string }>(COPIES)
  forgetInRecord(world)
  const [kept] = readdirSync(join(world.root, 'copies', 'found'))
  const manifest = join(world.root, 'copies', 'found', kept!, 'manifest.db')
  const before = readFileSync(manifest)
  await succeeds(world.dsc('cleanup'))
  assert.ok(readFileSync(manifest).equals(before), 'looking at a published manifest does not change it')
  const [taken] = world.query<{ source: null; lock_state: string }>(COPIES)
  assert.deepEqual({ ...taken, lock_state: '' }, { ...adopted, lock_state: '' })
  assert.match(taken!.lock_state, /no remote source is known/)
  assert.notEqual((await world.dsc('evict', 'found', '--yes')).code, 0)
  assert.notEqual((await world.dsc('evict', '--free', '1KiB', '--yes')).code, 0)
  assert.equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'the only copy')
})

test('a folder that was adopted and taken away is forgotten, with what the cache kept of it', async (context) => {
  const world = await makeWorld(context, {})
  const folder = await makeFolder(world)
  await world.dsc('adopt', folder, '--name', 'found')
  rmSync(folder, { recursive: true })
  await succeeds(world.dsc('cleanup'))
  assert.deepEqual(world.query(COPIES), [])
  assert.deepEqual(readdirSync(join(world.root, 'copies', 'found')), [])
  assert.equal((await world.dsc('cleanup')).stdout, 'nothing to clean up\n')
})

test('a cache below a symlink is taken back as what it is when the record was lost', async (context) => {
  const real = await makeWorld(context, {})
  const root = join(real.directory, 'linked', 'cache')
  mkdirSync(join(real.directory, 'disk'))
  symlinkSync(join(real.directory, 'disk'), join(real.directory, 'linked'))
  await writeTree(join(real.directory, 'source'), { 'a.txt': 'alpha' })
  const world = await makeWorld(context, {
    root,
    datasets: { letters: { source: `file://${join(real.directory, 'source')}/` } },
  })
  const prepared = await succeeds(world.dsc('prepare', 'letters', '--task', 'one'))
  const before = world.query(COPIES)
  forgetInRecord(world)
  assert.equal((await world.dsc('cleanup')).code, 0)
  assert.deepEqual(world.query(COPIES), before)
  assert.ok(existsSync(join(prepared.stdout.trimEnd(), 'a.txt')))
})

test('verify --repair leaves files alone that an owner put into an adopted folder', async (context) => {
  const world = await makeWorld(context, {})
  const folder = await makeFolder(world)
  await writeTree(join(world.directory, 'source'), { 'a.txt': 'the only copy', 'sub/b.txt': 'of all this' })
  const source = `file://${join(world.directory, 'source')}/`
  await succeeds(world.dsc('adopt', folder, '--name', 'found', '--source', source))
  await writeTree(folder, { 'notes.txt': 'of the owner' })
  await succeeds(world.dsc('verify', '--repair'))
  assert.equal(readFileSync(join(folder, 'notes.txt'), 'utf8'), 'of the owner')
})

test('cleanup goes on where a file stands in the place of an adopted folder', async (context) => {
  const world = await makeWorld(context, {})
  const folder = await makeFolder(world)
  assert.equal((await world.dsc('adopt', folder)).code, 0)
  rmSync(folder, { recursive: true })
  writeFileSync(folder, 'a file')
  await succeeds(world.dsc('cleanup'))
  assert.equal(readFileSync(folder, 'utf8'), 'a file')
})
