import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { escapeControls } from '../failure/escape-controls.js'
import { succeeds } from '../testing/dsc-processes.js'
import { startFlowerStore } from '../testing/flower-store.js'
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

test('a folder is a source by its path, and by its URL the same one', async (context) => {
  const { dsc, url, query, directory } = await makeFlowers(context)
  assert.equal((await dsc('prepare', './flowers', '--task', 'a')).code, 0)
  const { downloaded } = JSON.parse((await dsc('prepare', url, '--task', 'b', '--json')).stdout)
  assert.equal(downloaded, undefined, 'its copy is ready')
  const absolute = join(directory, 'flowers')
  assert.match((await dsc('why', absolute)).stdout, /flowers/)
  assert.match((await dsc('release', './flowers/', '--task', 'a')).stdout, /released 1 lease/)
  assert.deepEqual(query('SELECT task FROM leases'), [{ task: 'b' }])
  const missed = await dsc('prepare', 'flowers')
  assert.match(missed.stderr, /try: dsc prepare \.\/flowers\n/)
  const declared = await dsc('prepare', './birds', '--task', 'a', '--json')
  assert.equal(JSON.parse(declared.stdout).dataset, 'birds', 'the name that dsc.yaml gives it')
})

test('several datasets are prepared in one call, and a path is printed for each', async (context) => {
  const { dsc, query } = await makeFlowers(context)
  const { stdout, stderr } = await dsc('prepare', 'birds', './flowers', '--task', 'a')
  const [birds, flowers, end] = stdout.split('\n')
  assert.equal(readFileSync(join(birds!, 'b.txt'), 'utf8'), 'b', stderr)
  assert.equal(readFileSync(join(flowers!, 'a.txt'), 'utf8'), 'a')
  assert.equal(end, '')
  assert.equal(query('SELECT task FROM leases').length, 2)
  const { datasets } = JSON.parse(
    (await dsc('prepare', './flowers', 'birds', '--task', 'a', '--json')).stdout,
  )
  assert.deepEqual(
    datasets.map(({ path }: { path: string }) => path),
    [flowers, birds],
  )
})

test('what is prepared before a failure stays leased, and is said to', async (context) => {
  const { dsc, query, configure } = await makeFlowers(context)
  await configure({ datasets: { birds: { source: './birds' } }, cache: { maxDatasets: 1 } })
  const { code, stdout, stderr } = await dsc('prepare', 'birds', './flowers', '--task', 'a')
  assert.deepEqual([code, stdout], [5, ''], 'no path of half the datasets')
  assert.match(stderr, /\nbirds: 1 file staged; .*\nbirds stays leased to "a"; dsc release ends that\n/)
  assert.match(stderr, /\ndsc: no room for /)
  assert.deepEqual(query('SELECT task FROM leases'), [{ task: 'a' }])
  assert.equal((await dsc('release', 'birds', '--task', 'a')).code, 0)
  assert.deepEqual(query('SELECT task FROM leases'), [])
})

test('a bucket is read at an endpoint, with no credentials, and found again by its URL', async (context) => {
  const { server, bucket } = await startFlowerStore()
  context.after(() => server.close())
  await server.makePublic(bucket)
  const { dsc, query } = await makeWorld(context, {})
  const url = `s3://${bucket}/flowers/`
  const reach = ['--endpoint', server.endpoint, '--anonymous']
  await succeeds(dsc('prepare', url, ...reach, '--task', 'a'))
  assert.match((await dsc('why', url)).stdout, /staged/)
  assert.match((await dsc('release', url, '--task', 'a')).stdout, /released 1 lease/)
  const elsewhere = await dsc('prepare', url, '--endpoint', 'http://127.0.0.1:1', '--anonymous', '--plan')
  assert.equal(elsewhere.code, 8, 'the same URL elsewhere is other data')
  assert.deepEqual(query('SELECT DISTINCT dataset FROM copies').length, 1)
})

test('a bucket is read with the profile that is named', async (context) => {
  const { dsc } = await makeWorld(context, {})
  const { code, stderr } = await dsc('prepare', 's3://ml-data/flowers/', '--profile', 'nope', '--plan')
  assert.equal(code, 3)
  assert.match(stderr, /the AWS profile "nope" does not exist/)
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
  assert.equal((await dsc('prepare', 'birds', 'brids')).code, 4)
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
