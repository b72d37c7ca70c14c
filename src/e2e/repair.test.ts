import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startCountingStore } from '../testing/counting-store.js'
import { succeeds } from '../testing/dsc-processes.js'
import { mountSmallDisk, whyNoSmallDisk } from '../testing/small-disk.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

const MIB = 1024 * 1024

interface CopyRow {
  readonly copy_id: string
  readonly path: string
  readonly directory: string
}

function findCopy(world: World, dataset: string): CopyRow {
  return world.query<CopyRow>(`SELECT * FROM copies WHERE dataset = '${dataset}'`)[0]!
}

/** Writes other bytes of the same length into a read-only file. */
function spoil(path: string): void {
  const bytes = readFileSync(path)
  chmodSync(path, 0o644)
  writeFileSync(path, bytes.fill(0x21))
  chmodSync(path, 0o444)
}

async function prepareAll(world: World, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await succeeds(world.dsc('prepare', name, '--task', name))
  }
}

test('verify --repair goes on after a file and a copy that it cannot repair, tells of each and fails', async (context) => {
  const folders = await makeWorld(context, {})
  const sourceOf = (name: string) => join(folders.directory, name)
  const names = ['birds', 'flowers', 'trees', 'words']
  for (const name of names)
    await writeTree(sourceOf(name), { 'a.txt': `a of ${name}`, 'b.txt': `b of ${name}` })
  const datasets = Object.fromEntries(names.map((name) => [name, { source: `file://${sourceOf(name)}/` }]))
  const world = await makeWorld(context, { datasets })
  await prepareAll(world, names)
  for (const name of names)
    for (const file of ['a.txt', 'b.txt']) spoil(join(findCopy(world, name).path, file))
  // Of birds one file is another now, trees is gone, and the manifest of words is spoilt.
  writeFileSync(join(sourceOf('birds'), 'a.txt'), 'a of BIRDS')
  utimesSync(join(sourceOf('birds'), 'a.txt'), 1, 1)
  rmSync(sourceOf('trees'), { recursive: true })
  const manifest = join(findCopy(world, 'words').directory, 'manifest.db')
  chmodSync(manifest, 0o644)
  writeFileSync(manifest, 'no database at all, but long enough to be read as one'.repeat(100))
  const { code, stdout, stderr } = await world.dsc('verify', '--repair', '--json')
  assert.doesNotMatch(stderr, /^\s+at /m)
  const { copies } = JSON.parse(stdout) as {
    copies: {
      dataset: string
      repaired: { repairedFiles: number } | null
      failure: { code: string; message: string } | null
    }[]
  }
  assert.deepEqual(
    copies.map(({ dataset, repaired, failure }) => [dataset, repaired?.repairedFiles, failure?.code]),
    [
      ['birds', 1, 'SOURCE_CHANGED'],
      ['flowers', 2, undefined],
      ['trees', 0, 'SOURCE_NOT_FOUND'],
      ['words', undefined, 'COPY_DAMAGED'],
    ],
  )
  const text = (name: string, file: string) => readFileSync(join(findCopy(world, name).path, file), 'utf8')
  assert.equal(text('birds', 'b.txt'), 'b of birds')
  assert.equal(text('flowers', 'a.txt'), 'a of flowers')
  const { error } = JSON.parse(stderr.trim().split('\n').at(-1)!) as {
    error: { code: string; message: string; hint: string }
  }
  assert.equal(error.code, 'SOURCE_CHANGED', 'the first failure gives the exit code')
  for (const name of ['birds', 'trees', 'words']) assert.match(error.message, new RegExp(name))
  assert.equal(error.hint, 'dsc prepare birds --refresh')
  assert.equal(code, 8)
})

test('verify --repair mends an adopted folder that lies on another file system than the cache', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const world = await makeWorld(context, {})
  const folder = join(await mountSmallDisk(context, 1024 * 1024), 'found')
  const files = { 'a.txt': 'alpha', 'sub/b.txt': 'beta' }
  await writeTree(folder, files)
  await writeTree(join(world.directory, 'source'), files)
  const source = `file://${join(world.directory, 'source')}/`
  await succeeds(world.dsc('adopt', folder, '--name', 'found', '--source', source))
  writeFileSync(join(folder, 'sub', 'b.txt'), 'BETA')
  await succeeds(world.dsc('verify', '--repair'))
  assert.equal(readFileSync(join(folder, 'sub', 'b.txt'), 'utf8'), 'beta')
  assert.deepEqual(readdirSync(folder).toSorted(), ['a.txt', 'sub'])
})

test('cleanup removes what a killed repair left in an adopted folder, also on another file system', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const world = await makeWorld(context, {})
  const folder = join(await mountSmallDisk(context, 1024 * 1024), 'found')
  await writeTree(folder, { 'a.txt': 'alpha' })
  assert.equal((await world.dsc('adopt', folder)).code, 0)
  const { copy_id: copyId } = findCopy(world, 'found')
  for (const name of [`.dsc-repair-${copyId}-x1y2z3`, '.dsc-repair-of-somebody-else']) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, '1'), 'half a file')
  }
  await succeeds(world.dsc('cleanup'))
  assert.deepEqual(readdirSync(folder).toSorted(), ['.dsc-repair-of-somebody-else', 'a.txt'])
  assert.ok(existsSync(join(folder, 'a.txt')))
})

test('one rotten file of two versions is reported of both, and fetched once', async (context) => {
  const large = randomBytes(26 * MIB)
  const store = await startCountingStore(
    new Map([
      ['d/large', large],
      ['d/small', randomBytes(MIB)],
    ]),
  )
  context.after(() => store.close())
  const source = { source: 's3://bucket/d/', endpoint: store.endpoint, anonymous: true, pathStyle: true }
  const world = await makeWorld(context, { datasets: { flowers: source } })
  const paths: string[] = []
  for (const version of ['one', 'two']) {
    store.put('d/small', Buffer.from(version))
    const { stdout } = await succeeds(world.dsc('prepare', 'flowers', '--refresh', '--task', version))
    paths.push(stdout.trim())
  }
  const [one, two] = paths.map((path) => join(path, 'large'))
  rmSync(two!) // a file system that shares blocks shares no file
  linkSync(one!, two!)
  const rotten = Buffer.from(large)
  rotten[20 * MIB]! ^= 1
  chmodSync(one!, 0o644)
  writeFileSync(one!, rotten)
  const found = await world.dsc('verify', 'flowers', '--json')
  assert.match(found.stderr, /"dsc verify flowers --repair"/)
  const sent = store.sentBytes()
  const { stdout, stderr } = await succeeds(world.dsc('verify', 'flowers', '--repair', '--json'))
  const repaired = (JSON.parse(stdout) as { copies: { repaired: { repairedFiles: number } }[] }).copies
  assert.deepEqual(
    repaired.map((copy) => copy.repaired.repairedFiles),
    [1, 1],
  )
  assert.ok(store.sentBytes() - sent <= 10 * MIB, 'the second part once')
  for (const path of [one!, two!]) assert.ok(readFileSync(path).equals(large))
  assert.equal(statSync(one!).ino, statSync(two!).ino)
  assert.doesNotMatch(stderr, /share/, 'both were checked')
})

test('a rotten file that another dataset shares is told where one is verified by name', async (context) => {
  const world = await makeWorld(context, {})
  const paths: string[] = []
  for (const name of ['birds', 'flowers']) {
    const source = join(world.directory, name)
    await writeTree(source, { 'a.txt': 'alpha' })
    const { stdout } = await succeeds(world.dsc('prepare', `file://${source}`, '--task', name))
    paths.push(join(stdout.trim(), 'a.txt'))
  }
  const [one, two] = paths
  rmSync(two!)
  linkSync(one!, two!)
  spoil(one!)
  const names = world.query<{ dataset: string }>('SELECT dataset FROM copies ORDER BY dataset')
  const told = /other copies share 1 damaged file; to check every copy: dsc verify\b/
  const repaired = await succeeds(world.dsc('verify', names[0]!.dataset, '--repair'))
  assert.match(repaired.stderr, new RegExp(`${told.source} --repair`))
  assert.equal(readFileSync(two!, 'utf8'), '!!!!!')
  const all = await succeeds(world.dsc('verify', '--repair'))
  assert.doesNotMatch(all.stderr, told)
  assert.equal(readFileSync(two!, 'utf8'), 'alpha')
})
