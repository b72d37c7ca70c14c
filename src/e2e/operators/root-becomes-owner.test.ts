import assert from 'node:assert/strict'
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { succeeds } from '../../testing/dsc-processes.js'
import { ADA, findObstacle } from '../../testing/several-users.js'
import { makeWorld, writeTree } from '../../testing/world.js'

const skip = findObstacle()

/** A cache and its record that belong to Ada, and a dataset that everybody can read. */
async function makeAdasCache(context: TestContext) {
  const world = await makeWorld(context, { datasets: { flowers: { source: './flowers' } } })
  chmodSync(world.directory, 0o755)
  await writeTree(join(world.directory, 'flowers'), { 'a.txt': 'a', 'b/c.txt': 'c' })
  mkdirSync(world.root)
  chownSync(world.root, ADA.uid, ADA.gid)
  const environment = { DSC_RECORD: join(world.root, 'record.db') }
  return { ...world, asRoot: (...words: readonly string[]) => world.start(words, { environment }).finished }
}

/** User ids that own something below a folder. */
function ownersBelow(folder: string): readonly number[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return [...new Set(names.map((name) => lstatSync(join(folder, name)).uid))]
}

test('root leaves nothing of its own in a cache of another user', { skip }, async (context) => {
  const { root, asRoot } = await makeAdasCache(context)
  for (const words of [
    ['prepare', 'flowers', '--task', 'prolog'],
    ['prepare', 'flowers', '--task', 'ready'],
    ['release', 'flowers', '--task', 'prolog'],
    ['cleanup'],
  ]) {
    const { code, stderr } = await asRoot(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    assert.deepEqual(ownersBelow(root), [ADA.uid], words.join(' '))
  }
})

test('root cannot read for the owner of a cache what that user may not', { skip }, async (context) => {
  const { directory, root, asRoot } = await makeAdasCache(context)
  chmodSync(join(directory, 'flowers/a.txt'), 0o600)
  const { code } = await asRoot('prepare', 'flowers', '--task', 't')
  assert.equal(code, 7)
  assert.deepEqual(ownersBelow(root), [ADA.uid])
})

test('the command of root’s dsc run is root’s, and keeps its variables', { skip }, async (context) => {
  const { directory, root, asRoot } = await makeAdasCache(context)
  const script = `id -u > ${directory}/who; echo $HOME >> ${directory}/who; cat $DSC_DATASET/a.txt >> ${directory}/who`
  await succeeds(asRoot('run', 'flowers', '--', 'sh', '-c', script))
  assert.equal(readFileSync(join(directory, 'who'), 'utf8'), `0\n${process.env.HOME ?? ''}\na`)
  assert.deepEqual(ownersBelow(root), [ADA.uid])
})
