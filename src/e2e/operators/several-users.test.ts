import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, statSync } from 'node:fs'
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { succeeds } from '../../testing/dsc-processes.js'
import { type S3Server, startS3Server } from '../../testing/s3-server.js'
import { ADA, BOB, findObstacle, GROUP, makeSharedRoot } from '../../testing/several-users.js'
import { makeWorld, s3Dataset, waitFor } from '../../testing/world.js'

const skip = findObstacle()

let server: S3Server
let bucket: string

before(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
  await server.putObject(bucket, 'flowers/rose/1.jpg', 'a rose')
})
after(() => server.close())

for (const { mode, writers } of [
  { mode: 0o2775, writers: `the group ${GROUP}` },
  { mode: 0o777, writers: 'everybody' },
])
  test(`a cache that ${writers} may write is refused by name, and handed over by the command that is told`, {
    skip,
  }, async (context) => {
    const world = await makeWorld(context, { server })
    const { root, as } = makeSharedRoot(world, 0o755, ADA)
    const datasets = { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) }
    await world.configure({ cache: { root }, datasets })
    const first = await succeeds(as(ADA, 'prepare', 'flowers', '--task', 'ada'))
    chmodSync(root, mode)
    chownSync(join(root, 'copies', 'flowers'), BOB.uid, GROUP)
    const init = ['init', '--yes', '--cache-root', root, '--config', join(world.directory, 'other.yaml')]
    for (const owner of [ADA, BOB, { uid: 0, gid: 0 }])
      for (const words of [['prepare', 'flowers', '--task', 'bob'], ['status'], ['cleanup'], init]) {
        const refused = await as(owner, ...words)
        assert.equal(refused.code, 3, `${words}: ${refused.stdout}${refused.stderr}`)
        assert.ok(refused.stderr.includes(`${writers} may write to ${root} (mode ${mode.toString(8)}`))
      }
    const told = (await as(ADA, 'status')).stderr
    const command = /try: (.*); everybody/.exec(told)?.[1]?.replaceAll('sudo ', '')
    assert.ok(command !== undefined, told)
    execFileSync('sh', ['-c', command])
    const again = await as(ADA, 'prepare', 'flowers', '--task', 'again')
    assert.deepEqual([again.code, again.stdout], [0, first.stdout], again.stderr)
  })

test('what dsc writes is its user’s alone, whatever the umask, which is left to what it runs', {
  skip,
}, async (context) => {
  const world = await makeWorld(context, { server })
  const { root, as } = makeSharedRoot(world, 0o755, ADA)
  const datasets = { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) }
  await world.configure({ cache: { root }, datasets })
  const umask = process.umask(0o002)
  context.after(() => process.umask(umask))
  const { code, stdout, stderr } = await as(ADA, 'run', 'flowers', '--', 'sh', '-c', 'umask')
  assert.deepEqual([code, Number.parseInt(stdout, 8)], [0, 0o002], stderr)
  for (const name of ['copies', 'staging', 'record.db', 'copies/flowers'])
    assert.equal(statSync(join(root, name)).mode & 0o022, 0, name)
})

test('who may not write into the cache is told so, with what to do', { skip }, async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
  })
  await chmod(world.directory, 0o755)
  assert.equal((await world.dsc('prepare', 'flowers', '--task', 'root')).code, 0)
  const refused = await world.start(['prepare', 'flowers', '--task', 'ada'], { owner: ADA }).finished
  assert.equal(refused.code, 11, refused.stderr)
  assert.match(refused.stderr, /try: ask the service of the node at its door \(dsc agent\)/)
})

test('a copy that a user may not look at is not gone: neither prepare nor cleanup forgets it', {
  skip,
}, async (context) => {
  const world = await makeWorld(context, { server })
  const { root, environment: record } = makeSharedRoot(world, 0o755, BOB)
  const environment = { ...record, DSC_CACHE_ROOT: root }
  const home = join(world.directory, 'home')
  await mkdir(join(home, 'photos'), { recursive: true })
  await writeFile(join(home, 'photos', '1.jpg'), 'a photo')
  await chown(home, BOB.uid, BOB.gid)
  await succeeds(world.start(['adopt', join(home, 'photos')], { owner: BOB, environment }).finished)
  await chown(home, ADA.uid, ADA.gid)
  await chmod(home, 0o700)
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
  assert.match(refused.stderr, /ask the service of the node at its door/)
  // The log of a writer that is at work is part of what there is to see.
  const running = world.start(['run', 'flowers', '--task', 'writer', '--', 'sleep', '60'])
  await waitFor('the writer', async () => /\nwriter +flowers/.test((await look('leases')).stdout))
  running.process.kill('SIGTERM')
  await running.finished
})
