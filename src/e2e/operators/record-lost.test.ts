import assert from 'node:assert/strict'
import { closeSync, cpSync, existsSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../../testing/dsc-processes.js'
import { makeWorld, type World, writeTree } from '../../testing/world.js'

async function makeLetters(
  context: Parameters<typeof makeWorld>[0],
): Promise<{ world: World; path: string }> {
  const world = await makeWorld(context, {})
  const letters = join(world.directory, 'letters')
  await writeTree(letters, { a: 'alpha', b: 'beta' })
  await world.configure({ datasets: { letters: { source: `file://${letters}/` } } })
  const { stdout } = await succeeds(world.dsc('prepare', 'letters', '--task', 'one'))
  return { world, path: stdout.trimEnd() }
}

function loseRecord(world: World): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(world.recordPath + suffix, { force: true })
}

test('after the record was lost, prepare takes the copy that is there and fetches nothing', async (context) => {
  for (const words of [[], ['--refresh']]) {
    const { world, path } = await makeLetters(context)
    loseRecord(world)
    const again = await world.dsc('prepare', 'letters', '--task', 'two', ...words)
    assert.deepEqual([again.code, again.stdout], [0, `${path}\n`], again.stderr)
    assert.equal(readdirSync(join(world.root, 'copies', 'letters')).length, 1)
  }
})

test('a copy found on disk is kept for the jobs that were given its path before', async (context) => {
  const { world, path } = await makeLetters(context)
  loseRecord(world)
  assert.match((await world.dsc('cleanup')).stdout, /recorded/)
  assert.equal((await world.dsc('cleanup')).stdout, 'nothing to clean up\n')
  const refused = await world.dsc('evict', 'letters', '--yes')
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /unknown \(found on disk\)/)
  assert.ok(existsSync(join(path, 'a')))
  assert.equal((await world.dsc('release', '--all', '--task', 'unknown (found on disk)')).code, 0)
  assert.equal((await world.dsc('evict', 'letters', '--yes')).code, 0)
})

test('cleanup says that it leaves a second copy whose path a job may have, and deletes nothing', async (context) => {
  const { world, path } = await makeLetters(context)
  const copy = join(path, '..')
  const lost = `${copy.slice(0, copy.lastIndexOf('-'))}-0ldc0py0`
  cpSync(copy, lost, { recursive: true })
  const held = openSync(join(lost, 'files', 'a'), 'r')
  const used = await world.dsc('cleanup')
  assert.match(used.stdout, new RegExp(`left ${lost} .*process ${process.pid} is in it`))
  closeSync(held)
  const young = await world.dsc('cleanup')
  assert.match(young.stdout, new RegExp(`left ${lost} .*may have been given its path`))
  assert.equal(readFileSync(join(lost, 'files', 'a'), 'utf8'), 'alpha')
})
