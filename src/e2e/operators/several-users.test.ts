import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type S3Server, startS3Server } from '../../testing/s3-server.js'
import { ADA, BOB, findObstacle, makeSharedRoot } from '../../testing/several-users.js'
import { makeWorld, s3Dataset, waitFor } from '../../testing/world.js'

const LARGE_BYTES = 20_000_000

const skip = findObstacle()

let server: S3Server
let bucket: string

before(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
  await server.putObject(bucket, 'flowers/rose/1.jpg', 'a rose')
  await server.putObject(bucket, 'birds/1.wav', 'tweet')
  await server.putObject(bucket, 'large/a', 'small')
  await server.putObject(bucket, 'large/b', Buffer.alloc(LARGE_BYTES, 7))
})
after(() => server.close())

for (const { mode, grants } of [
  { mode: 0o2775, grants: 'its group' },
  { mode: 0o777, grants: 'everybody' },
]) {
  test(`in a cache root open to ${grants}, users use, evict and go on with what others staged`, {
    skip,
  }, async (context) => {
    const world = await makeWorld(context, { server })
    const { root, environment, as } = makeSharedRoot(world, mode)
    await world.configure({
      cache: { root, maxDatasets: 2 },
      datasets: {
        flowers: s3Dataset(bucket, 'flowers/', server.endpoint),
        birds: s3Dataset(bucket, 'birds/', server.endpoint),
        large: s3Dataset(bucket, 'large/', server.endpoint),
      },
    })

    const first = await as(ADA, 'prepare', 'flowers', '--task', 'ada')
    assert.equal(first.code, 0, first.stderr)
    const second = await as(BOB, 'prepare', 'flowers', '--task', 'bob')
    assert.deepEqual([second.code, second.stdout], [0, first.stdout], second.stderr)
    assert.equal((await as(BOB, 'prepare', 'birds', '--task', 'bob')).code, 0)
    assert.equal((await as(ADA, 'release', '--all', '--task', 'bob')).code, 0)

    // Ada's staging is killed; Bob's prepare evicts a copy of each and takes the staging over.
    const killed = world.start(['prepare', 'large', '--task', 'bob', '--bandwidth-limit', '2MB/s'], {
      owner: ADA,
      environment,
    })
    await waitFor('the download to begin', async () =>
      /staging \d+%/.test((await as(ADA, 'status', '--dataset', 'large')).stdout),
    )
    killed.process.kill('SIGKILL')
    await killed.finished
    const taken = await as(BOB, 'prepare', 'large', '--task', 'bob')
    assert.equal(taken.code, 0, `${taken.signal} ${taken.stderr}`)
    const content = await readFile(join(taken.stdout.trimEnd(), 'b'))
    assert.ok(content.equals(Buffer.alloc(LARGE_BYTES, 7)))

    for (const [owner, dataset] of [
      [BOB, 'flowers'],
      [ADA, 'large'],
    ] as const) {
      await as(owner, 'release', '--all', '--task', owner === ADA ? 'bob' : 'ada')
      const evicted = await as(owner, 'evict', dataset, '--yes')
      assert.equal(evicted.code, 0, evicted.stderr)
    }
    const umask = await as(ADA, 'run', 'birds', '--', 'sh', '-c', 'umask')
    assert.equal(Number.parseInt(umask.stdout, 8), process.umask(), 'what dsc runs keeps its own umask')
  })
}

test('who may not write into the cache is told so, with what to do', { skip }, async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
  })
  await chmod(world.directory, 0o755)
  assert.equal((await world.dsc('prepare', 'flowers', '--task', 'root')).code, 0)
  const refused = await world.start(['prepare', 'flowers', '--task', 'ada'], { owner: ADA }).finished
  assert.equal(refused.code, 11, refused.stderr)
  assert.match(refused.stderr, /open the record and its folder to your group \(docs\/start\/node\.md\)/)
})

test('a copy that a user may not look at is not gone: neither prepare nor cleanup forgets it', {
  skip,
}, async (context) => {
  const world = await makeWorld(context, { server })
  await chmod(world.directory, 0o755)
  const root = join(world.directory, 'shared')
  await mkdir(root)
  await chmod(root, 0o777)
  const environment = { DSC_RECORD: join(root, 'record.db'), DSC_CACHE_ROOT: root }
  const home = join(world.directory, 'home')
  await mkdir(join(home, 'photos'), { recursive: true })
  await writeFile(join(home, 'photos', '1.jpg'), 'a photo')
  await chmod(home, 0o700)
  assert.equal((await world.start(['adopt', join(home, 'photos')], { environment }).finished).code, 0)
  for (const words of [['prepare', 'photos', '--task', 'bob'], ['cleanup']]) {
    const { stdout, stderr } = await world.start(words, { owner: BOB, environment }).finished
    const status = await world.start(['status', '--json'], { environment }).finished
    const { copies } = JSON.parse(status.stdout)
    assert.deepEqual([copies.length, copies[0]?.state], [1, 'ready'], `${words}: ${stdout}${stderr}`)
  }
})

test('who may only read the cache looks at it, and is refused what writes', { skip }, async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
  })
  await world.dsc('prepare', 'flowers', '--task', 'owner')
  await chmod(world.directory, 0o755)
  const look = (...words: readonly string[]) => world.start(words, { owner: BOB }).finished
  for (const { words, shows } of [
    { words: ['status'], shows: /\nflowers +node-a +ready/ },
    { words: ['why', 'flowers'], shows: /^flowers on node-a: ready/ },
    { words: ['leases'], shows: /\nowner +flowers/ },
    { words: ['history'], shows: /staged +flowers/ },
    { words: ['hint', 'flowers'], shows: /^node-a {2}ready: flowers/ },
    { words: ['verify'], shows: /^flowers: 1 file, .* all as downloaded/ },
  ]) {
    const { code, stdout, stderr } = await look(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    assert.match(stdout, shows)
  }
  const refused = await look('prepare', 'flowers')
  assert.equal(refused.code, 11)
  assert.match(refused.stderr, /open the record and its folder to your group/)
  // The log of a writer that is at work is part of what there is to see.
  const running = world.start(['run', 'flowers', '--task', 'writer', '--', 'sleep', '60'])
  await waitFor('the writer', async () => /\nwriter +flowers/.test((await look('leases')).stdout))
  running.process.kill('SIGTERM')
  await running.finished
})
