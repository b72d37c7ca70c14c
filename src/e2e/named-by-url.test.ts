import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { escapeControls } from '../failure/escape-controls.js'
import { makeWorld, writeTree } from '../testing/world.js'

async function makeFlowers(context: TestContext) {
  const world = await makeWorld(context, { datasets: { birds: { source: './birds' } } })
  await writeTree(world.directory, { 'flowers/a.txt': 'a', 'birds/b.txt': 'b' })
  return { ...world, url: pathToFileURL(`${join(world.directory, 'flowers')}/`).href }
}

test('what was prepared by a URL is named by it everywhere, and let go', async (context) => {
  const { dsc, url, query } = await makeFlowers(context)
  assert.equal((await dsc('prepare', url, '--task', 'a')).code, 0)
  for (const words of [
    ['why', url],
    ['history', url],
    ['lock', url],
    ['unlock', url],
    ['verify', url, url],
    ['status', '--dataset', url, '--plain'],
    ['leases', '--dataset', url],
  ]) {
    const { code, stdout, stderr } = await dsc(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    assert.match(stdout, /flowers/)
    if (words[0] === 'verify')
      assert.equal(stdout.trim().split('\n').length, 1, 'one dataset is verified once')
  }
  assert.match((await dsc('release', url, '--task', 'a')).stdout, /released 1 lease/)
  assert.deepEqual(query('SELECT lease_id FROM leases'), [])
  assert.match((await dsc('evict', url, '--dry-run')).stdout, /would evict\n {2}\S*flowers/)
})

test('one source is read once, whatever its dataset is called', async (context) => {
  const { dsc, url, configure } = await makeFlowers(context)
  assert.equal((await dsc('prepare', url, '--task', 'a')).code, 0)
  await configure({ datasets: { flowers: { source: './flowers' } } })
  const { downloaded } = JSON.parse((await dsc('prepare', 'flowers', '--task', 'b', '--json')).stdout)
  assert.deepEqual([downloaded.fetchedBytes, downloaded.reusedFiles], [0, 1])
})

test('all names are looked at before anything is staged', async (context) => {
  const { dsc, query } = await makeFlowers(context)
  assert.equal((await dsc('run', 'birds', 'brids', '--', 'true')).code, 4)
  assert.deepEqual(query('SELECT copy_id FROM copies'), [])
})

for (const task of ['', ' ', 'a\u001b[2Jb', 'a\nb', 'a\u202eb']) {
  test(`${JSON.stringify(task)} names no task`, async (context) => {
    const { dsc } = await makeFlowers(context)
    const { code, stderr } = await dsc('prepare', 'birds', '--task', task)
    assert.equal(code, 2)
    assert.match(stderr, /without control characters/)
    assert.equal(escapeControls(stderr), stderr)
  })
}
