import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, writeTree } from '../testing/world.js'

/** A user without a cache root of their own choice. */
async function makeNewcomer(context: TestContext) {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/a.txt': 'a' })
  writeFileSync(join(world.directory, 'dsc.yaml'), 'datasets: { flowers: { source: ./flowers } }\n')
  const environment = { XDG_STATE_HOME: join(world.directory, 'state') }
  const run = (...words: readonly string[]) => world.start(words, { environment }).finished
  return { ...world, run, cache: join(world.directory, 'xdg/dsc') }
}

test('one’s own cache that was deleted begins anew, with one note', async (context) => {
  const { run, cache } = await makeNewcomer(context)
  assert.equal((await run('prepare', 'flowers', '--task', 'a')).code, 0)
  rmSync(cache, { recursive: true })
  const again = await succeeds(run('prepare', 'flowers', '--task', 'a'))
  assert.equal(again.stderr.split('was deleted: what it had is fetched again').length, 2)
  assert.equal((await run('cleanup')).code, 0)
})

test('dsc doctor asks of the cache what dsc prepare asks', async (context) => {
  const { dsc, root, configure, directory } = await makeWorld(context, {})
  await writeTree(directory, { 'flowers/a.txt': 'a' })
  await configure({ datasets: { flowers: { source: './flowers' } } })
  assert.equal((await dsc('prepare', 'flowers', '--task', 'a')).code, 0)
  rmSync(root, { recursive: true })
  const lost = await dsc('prepare', 'flowers', '--task', 'a')
  assert.equal(lost.code, 3, 'its disk may not be mounted')
  assert.match(lost.stderr, /dsc-cache\.json/)
  const { code, stdout } = await dsc('doctor')
  assert.equal(code, 3)
  assert.match(stdout, /dsc-cache\.json is missing/)
})

test('dsc help of a verb is its own help, and of anything else an unknown command', async (context) => {
  const { run } = await makeNewcomer(context)
  for (const verb of [['prepare'], ['feed', 'serve']])
    assert.equal((await run('help', ...verb)).stdout, (await run(...verb, '--help')).stdout)
  assert.match((await run('help', 'nosuch')).stderr, /unknown command "nosuch"/)
})
