import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld } from '../testing/world.js'

const FILES = { 'a.txt': 'one', 'b/c.txt': 'two', 'b/d.txt': 'three', 'e/f/g.txt': 'four' }

/** A world in which `flowers`, of four files in a folder beside it, is staged. */
async function stageFlowers(t: TestContext) {
  const folder = (await makeWorld(t, {})).directory
  const source = join(folder, 'source')
  for (const [path, body] of Object.entries(FILES)) {
    mkdirSync(join(source, path, '..'), { recursive: true })
    writeFileSync(join(source, path), body)
  }
  const world = await makeWorld(t, { datasets: { flowers: { source: `file://${source}` } } })
  const prepare = async (...words: readonly string[]) => {
    const prepared = await succeeds(world.dsc('prepare', 'flowers', '--task', 'job', ...words))
    return { path: prepared.stdout.trim(), stderr: prepared.stderr }
  }
  const { path } = await prepare()
  return { world, source, path, prepare }
}

function filesBelow(path: string): readonly string[] {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => statSync(join(path, name)).isFile()).toSorted()
}

for (const { what, remove, says } of [
  {
    what: 'its folder',
    remove: (path: string) => rmSync(path, { recursive: true }),
    says: /is staged again|gone/,
  },
  {
    what: 'all that is in it',
    remove: (path: string) => {
      for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true })
    },
    says: /4 of 4 files were removed.*staged again/,
  },
  {
    what: 'one file at its top',
    remove: (path: string) => rmSync(join(path, 'a.txt')),
    says: /1 of 4 files was removed.*fetching what is missing/,
  },
  {
    what: 'one file in a folder',
    remove: (path: string) => rmSync(join(path, 'b/c.txt')),
    says: /1 of 4 files was removed/,
  },
  {
    what: 'a file and its folders',
    remove: (path: string) => rmSync(join(path, 'e'), { recursive: true }),
    says: /1 of 4 files was removed/,
  },
  {
    what: 'its whole directory',
    remove: (path: string) => rmSync(join(path, '..'), { recursive: true }),
    says: /is staged again|gone/,
  },
])
  for (const flags of [[], ['--refresh']])
    test(`a copy from which somebody removed ${what} is whole again ${['after prepare', ...flags].join(' ')}`, async (t) => {
      const { world, path, prepare } = await stageFlowers(t)
      remove(path)
      const again = await prepare(...flags)
      assert.match(again.stderr, says)
      assert.deepEqual(filesBelow(again.path), Object.keys(FILES).toSorted())
      await succeeds(world.dsc('cleanup'))
      await succeeds(world.dsc('verify', 'flowers'))
      const third = await prepare()
      assert.doesNotMatch(third.stderr, /removed/)
      assert.equal(third.path, again.path)
    })

test('a copy whose files somebody removed while another file was added, too, is mended where it lies', async (t) => {
  const { path, prepare } = await stageFlowers(t)
  rmSync(join(path, 'a.txt'))
  writeFileSync(join(path, 'other.txt'), 'x')
  assert.equal((await prepare()).path, path)
  assert.ok(filesBelow(path).includes('a.txt'))
})

test('a copy that cannot be mended, as its source has changed, is staged anew', async (t) => {
  const { source, path, prepare } = await stageFlowers(t)
  rmSync(join(path, 'a.txt'))
  writeFileSync(join(source, 'a.txt'), 'other')
  const again = await prepare()
  assert.notEqual(again.path, path)
  assert.match(again.stderr, /staged again/)
  assert.deepEqual(filesBelow(again.path), Object.keys(FILES).toSorted())
})

test('dsc cleanup removes what is left of a copy whose files were removed', async (t) => {
  const { world, path } = await stageFlowers(t)
  rmSync(path, { recursive: true })
  for (let times = 0; times < 2; times += 1) {
    await succeeds(world.dsc('cleanup'))
  }
  assert.deepEqual(readdirSync(join(world.root, 'copies/flowers')), [])
})
