import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

const FILES = { 'a.txt': 'the only copy', 'sub/b.txt': 'of all this' }

function copiesOf(world: World) {
  return world.query<{ dataset: string; path: string; lock_state: string | null }>(
    'SELECT dataset, path, lock_state FROM copies',
  )
}

for (const { how, place, isDeclared } of [
  { how: 'as --source', place: 'found', isDeclared: false },
  { how: 'as --source, by a link', place: 'alias', isDeclared: false },
  { how: 'as the source of a dataset in dsc.yaml', place: 'found', isDeclared: true },
])
  test(`a folder that is its own source is never deleted: given ${how}`, async (context) => {
    const world = await makeWorld(context, {})
    const folder = join(world.directory, 'found')
    await writeTree(folder, FILES)
    symlinkSync(folder, join(world.directory, 'alias'))
    const source = `file://${join(world.directory, place)}/`
    if (isDeclared) await world.configure({ datasets: { found: { source } } })
    await succeeds(world.dsc('adopt', folder, ...(isDeclared ? [] : ['--source', source])))
    assert.equal((await world.dsc('evict', 'found', '--yes')).code, 10)
    await world.dsc('unlock', 'found')
    assert.equal((await world.dsc('evict', 'found', '--yes')).code, 10)
    assert.equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'the only copy')
    for (const suffix of ['', '-wal', '-shm']) rmSync(world.recordPath + suffix, { force: true })
    assert.equal((await world.dsc('cleanup')).code, 0)
    assert.match(String(copiesOf(world)[0]?.lock_state), /no remote source is known/)
  })

test('neither the cache can be adopted, nor a folder in it, nor one that holds it', async (context) => {
  const world = await makeWorld(context, {})
  mkdirSync(join(world.root, 'copies'), { recursive: true })
  await writeTree(world.directory, { 'readme.txt': 'beside the cache' })
  for (const folder of [world.directory, world.root, join(world.root, 'copies')]) {
    const refused = await world.dsc('adopt', folder)
    assert.equal(refused.code, 2, `${folder} ${refused.stderr}`)
    assert.match(refused.stderr, /the cache/)
  }
  assert.deepEqual(copiesOf(world), [])
})

/** A folder and its source, adopted, and both with one more file since. */
async function adoptAndChange(world: World, name = 'found') {
  const folder = join(world.directory, 'found')
  const source = ['--source', `file://${join(world.directory, 'source')}/`]
  for (const place of [folder, join(world.directory, 'source')]) await writeTree(place, FILES)
  await succeeds(world.dsc('adopt', folder, '--name', 'found', ...source))
  for (const place of [folder, join(world.directory, 'source')]) await writeTree(place, { 'c.txt': 'new' })
  return { folder, again: () => world.dsc('adopt', folder, '--name', name, ...source) }
}

for (const name of ['found', 'another'])
  test(`a folder that is adopted anew as ${name} is one copy, and can be deleted`, async (context) => {
    const world = await makeWorld(context, {})
    const { folder, again } = await adoptAndChange(world, name)
    await succeeds(again())
    assert.deepEqual(
      copiesOf(world).map(({ dataset, path }) => [dataset, path]),
      [[name, folder]],
    )
    await succeeds(world.dsc('evict', name, '--yes'))
    assert.ok(!existsSync(folder))
    assert.equal((await world.dsc('cleanup')).stdout, 'nothing to clean up\n')
  })

test('a folder that a job uses is not adopted anew: its copy would lose the lease', async (context) => {
  const world = await makeWorld(context, {})
  const { again } = await adoptAndChange(world)
  assert.equal((await world.dsc('prepare', 'found', '--task', 'job')).code, 0)
  const refused = await again()
  assert.equal(refused.code, 10, refused.stderr)
  assert.match(refused.stderr, /leased by job/)
  await world.dsc('release', 'found', '--task', 'job')
  assert.equal((await again()).code, 0)
})

test('a folder in an adopted one is refused where either may be deleted', async (context) => {
  const world = await makeWorld(context, {})
  const { folder } = await adoptAndChange(world)
  const refused = await world.dsc('adopt', join(folder, 'sub'))
  assert.equal(refused.code, 2, refused.stderr)
  assert.match(refused.stderr, /found/)
})
