import assert from 'node:assert/strict'
import {
  chownSync,
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import Database from 'better-sqlite3'
import { StorageClient } from '../../feed/storage/storage-client.js'
import { fromText } from '../../samples/byte-path.js'
import { tableFiles } from '../../samples/sample-table.js'
import { SampleTableBuilder } from '../../samples/sample-table-builder.js'
import { killWithTest, succeeds } from '../../testing/dsc-processes.js'
import { type S3Server, startS3Server } from '../../testing/s3-server.js'
import { findObstacle, GROUP, makeSharedRoot, type Owner } from '../../testing/several-users.js'
import { makeWorld, s3Dataset, type World, waitFor, writeTree } from '../../testing/world.js'
import { fingerprint } from '../crash/check-invariants.js'

const ROOT: Owner = { uid: 0, gid: GROUP }
const MALLORY: Owner = { uid: 64_003, gid: GROUP }
const ROUNDS = Number(process.env.DSC_TEST_SWAP_ROUNDS ?? 3)

const skip = findObstacle()
let server: S3Server
let bucket: string

before(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
  for (const name of ['rose/1.jpg', 'rose/2.jpg', 'tulip.jpg']) {
    await server.putObject(bucket, `flowers/${name}`, `a picture of ${name}`)
  }
  await server.putObject(bucket, 'birds/1.wav', 'tweet')
})
after(() => server.close())

interface Shared {
  readonly world: World
  readonly root: string
  /** Belongs to nobody of the cache; nothing in it may change. */
  readonly outside: string
  as(owner: Owner, ...words: readonly string[]): ReturnType<World['dsc']>
}

/** A cache with the record in it. Beside it a folder in which nobody of dsc has business. */
async function makeShared(context: TestContext, owner = ROOT): Promise<Shared> {
  const world = await makeWorld(context, { server })
  const { root, as } = makeSharedRoot(world, 0o755, owner)
  const outside = join(world.directory, 'outside')
  await world.configure({
    cache: { root },
    datasets: {
      flowers: s3Dataset(bucket, 'flowers/', server.endpoint),
      birds: s3Dataset(bucket, 'birds/', server.endpoint),
    },
  })
  await succeeds(as(ROOT, 'prepare', 'flowers', '--task', 'one'))
  // Whatever dsc looks for by name, it would find here, too.
  await writeTree(outside, { 'rose/1.jpg': 'not yours', '1.wav': 'nor this', 'flowers/x/files/a': 'canary' })
  cpSync(join(root, 'copies'), outside, { recursive: true })
  for (const name of ['staging', 'trash', 'files'])
    cpSync(join(root, 'copies'), join(outside, name), { recursive: true })
  return { world, root, outside, as }
}

function copyOf(root: string, dataset: string): string {
  const folder = join(root, 'copies', dataset)
  return join(folder, readdirSync(folder)[0]!)
}

function swap(folder: string, target: string): void {
  renameSync(folder, `${folder}.aside`)
  symlinkSync(target, folder)
}

for (const { name, folder, command } of [
  { name: 'trash', folder: () => 'trash', command: ['cleanup'] },
  { name: 'staging', folder: () => 'staging', command: ['cleanup'] },
  { name: 'copies', folder: () => 'copies', command: ['cleanup'] },
  { name: 'copies', folder: () => 'copies', command: ['evict', 'flowers', '--yes'] },
  { name: 'the folder of a dataset', folder: () => 'copies/flowers', command: ['cleanup'] },
  { name: 'the folder of a dataset', folder: () => 'copies/flowers', command: ['evict', 'flowers', '--yes'] },
  {
    name: 'the folder of a copy',
    folder: (root: string) => copyOf(root, 'flowers').slice(root.length + 1),
    command: ['evict', 'flowers', '--yes'],
  },
  {
    name: 'the files of a copy',
    folder: (root: string) => `${copyOf(root, 'flowers').slice(root.length + 1)}/files`,
    command: ['verify', '--repair'],
  },
]) {
  test(`a link in the place of ${name} is named, and what it leads to stays: ${command.join(' ')}`, {
    skip,
  }, async (context) => {
    const { root, outside, as } = await makeShared(context)
    await as(ROOT, 'release', '--all', '--task', 'one')
    const path = join(root, folder(root))
    swap(path, outside)
    const before = fingerprint(outside)
    const done = await as(ROOT, ...command)
    assert.deepEqual(fingerprint(outside), before)
    assert.match(done.stdout + done.stderr, new RegExp(`${path}: expected a f.*, found a symbolic link`))
  })
}

test('a record that names a folder outside of the cache has nothing deleted or mended there', {
  skip,
}, async (context) => {
  const { root, outside, as } = await makeShared(context)
  await as(ROOT, 'release', '--all', '--task', 'one')
  const before = fingerprint(outside)
  const record = new Database(join(root, 'record.db'))
  record.prepare(`UPDATE copies SET directory = ?, path = ?, origin = 'local'`).run(outside, outside)
  record.close()
  for (const words of [['verify', '--repair'], ['cleanup'], ['evict', 'flowers', '--yes'], ['cleanup']]) {
    const { stdout, stderr } = await as(ROOT, ...words)
    assert.deepEqual(fingerprint(outside), before, `${words}: ${stdout}${stderr}`)
  }
  const { stderr } = await as(ROOT, 'cleanup', '--json')
  assert.doesNotMatch(stderr, /^\s+at /m)
})

test('an adopted folder is deleted only where its owner or root had it adopted', {
  skip,
}, async (context) => {
  const { world, root, as } = await makeShared(context)
  const folder = join(world.directory, 'photos')
  await writeTree(folder, { '1.jpg': 'a photo' })
  cpSync(folder, join(world.directory, 'originals'), { recursive: true })
  const source = `file://${join(world.directory, 'originals')}/`
  assert.equal((await as(ROOT, 'adopt', folder, '--name', 'photos', '--source', source)).code, 0)
  const marker = join(world.directory, '.photos.dsc-adopted')
  chownSync(marker, MALLORY.uid, GROUP)
  const refused = await as(ROOT, 'evict', 'photos', '--yes')
  assert.equal(refused.code, 3, refused.stderr)
  assert.deepEqual(readdirSync(folder), ['1.jpg'])
  chownSync(marker, 0, 0)
  assert.equal((await as(ROOT, 'cleanup')).code, 0)
  assert.deepEqual(
    readdirSync(world.directory).filter((name) => name.includes('photos')),
    [],
  )
  assert.ok(root)
})

test('an agent lists and sends nothing that a record or a client names outside of its cache', {
  skip,
}, async (context) => {
  const { world, root, outside } = await makeShared(context)
  const secret = join(outside, 'secret')
  writeFileSync(secret, 'secret', { mode: 0o600 })
  await world.configure({
    cache: { root },
    agent: { listen: '127.0.0.1:0' },
    datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
  })
  const path = join(root, 'record.db')
  const agent = world.start(['agent'], { environment: { DSC_RECORD: path } })
  const record = new Database(path)
  context.after(() => record.close())
  const find = () =>
    record.prepare('SELECT copy_id, agent FROM nodes, copies').get() as {
      copy_id: string
      agent: string | null
    }
  await waitFor('the agent', () => find().agent !== null)
  const { copy_id: copyId, agent: reached } = find()
  const samplesUrl = `${JSON.parse(reached!).url}/v1/copies/${copyId}/samples`
  const samples = new SampleTableBuilder()
  const paths = [`../../../../../../../../../../..${secret}`, 'rose/1.jpg'].map(fromText)
  for (const [file, name] of paths.entries())
    samples.add({ name, file, offset: 0, length: 6, crc32: crc32(file === 0 ? 'secret' : 'a pict') })
  const table = samples.build(tableFiles({ format: 'file' }, paths))
  const served = await fetch(`${samplesUrl}/serve`, { method: 'POST', body: Buffer.from(table.bytes) })
  assert.equal(served.status, 200, await served.clone().text())
  const { port } = (await served.json()) as { port: number }
  const arenaFd = openSync(join(world.directory, 'arena'), 'w+')
  const address = { host: '127.0.0.1', port }
  const client = await StorageClient.connect({ address, token: undefined, table, arenaFd })
  const statuses: string[] = []
  await client.fetch({
    samples: Uint32Array.of(0, 1),
    offsets: Float64Array.of(0, 6),
    maxBytes: 100,
    deadlineMs: 20_000,
    onSample: (index, status) => {
      statuses[index] = status
    },
  }).done
  client.close()
  assert.equal(readFileSync(join(world.directory, 'arena'), 'latin1').slice(6), 'a pict')
  assert.notEqual(statuses[0], statuses[1])
  assert.doesNotMatch(readFileSync(join(world.directory, 'arena'), 'latin1'), /secret/)

  record.prepare('UPDATE copies SET path = ?').run(outside)
  const listed = await fetch(samplesUrl)
  assert.match(await listed.text(), /is not where this cache has flowers/)
  assert.ok(listed.status >= 400, `${listed.status}`)
  agent.process.kill('SIGTERM')
  await agent.finished
})

test('folders that their owner swaps for links all the time lead nobody outside, root least of all', {
  skip,
}, async (context) => {
  const { root, outside, as } = await makeShared(context, MALLORY)
  const swapper = fileURLToPath(new URL('../../testing/swap-folders.js', import.meta.url))
  const before = fingerprint(outside)
  const start = killWithTest(context)
  const folders = ['trash', 'staging', 'copies', 'copies/flowers', 'copies/birds'].map((name) =>
    join(root, name),
  )
  const deep = [copyOf(root, 'flowers'), join(copyOf(root, 'flowers'), 'files')]
  const mallory = start([process.execPath, swapper, outside, ...folders, ...deep], {
    cwd: '/',
    environment: {},
    owner: MALLORY,
  })
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const owner of [ROOT, MALLORY]) {
        await Promise.all([
          as(owner, 'prepare', round % 2 === 0 ? 'birds' : 'flowers', '--task', `of-${owner.uid}`),
          as(owner, 'verify', '--repair'),
        ])
        await as(owner, 'release', '--all', '--task', `of-${owner.uid}`)
        for (const words of [
          ['evict', 'flowers', '--yes'],
          ['evict', 'birds', '--yes'],
          ['cleanup', '--abandoned-after', '0s'],
        ]) {
          const { stdout, stderr } = await as(owner, ...words)
          assert.deepEqual(fingerprint(outside), before, `${owner.uid} ${words}: ${stdout}${stderr}`)
        }
      }
    }
  } finally {
    mallory.process.kill('SIGTERM')
  }
  const { stdout } = await mallory.finished
  assert.ok(Number(stdout) > 100, `${stdout} swaps`)
  assert.deepEqual(fingerprint(outside), before)
})
