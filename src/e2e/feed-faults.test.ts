import assert from 'node:assert/strict'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { shuffleSamples } from '../feed/plan/order.js'
import { makeCertificate } from '../testing/certificate.js'
import { type Running, succeeds } from '../testing/dsc-processes.js'
import { openTestFeedClient } from '../testing/feed-client.js'
import { type S3Server, startS3Server } from '../testing/s3-server.js'
import { sampleBytes, writeSamples } from '../testing/sample-folder.js'
import { makeWorld, type World, waitFor } from '../testing/world.js'

const COUNT = 300
const BATCH = 10
const SEED = 9
const lengthOf = (id: number) => 2000 + ((id * 91) % 3000)

let server: S3Server
before(async () => {
  server = await startS3Server()
})
after(() => server.close())

/** A world whose folder `samples` holds the samples. */
async function makeSamplesWorld(context: TestContext, settings: object = {}): Promise<World> {
  const world = await makeWorld(context, { server, ...settings })
  writeSamples(join(world.directory, 'samples'), COUNT, lengthOf)
  return world
}

/** The first complete JSON value that a command prints. */
async function firstJson(running: Running): Promise<Readonly<Record<string, never>>> {
  let text = ''
  for await (const chunk of running.process.stdout!) {
    text += chunk
    try {
      return JSON.parse(text)
    } catch {}
  }
  const { code, stderr } = await running.finished
  throw new Error(`the command ended with ${code}: ${stderr}`)
}

async function startStorage(world: World, ...words: readonly string[]) {
  const running = world.start(['feed', 'storage', 'samples', '--listen', '127.0.0.1:0', '--json', ...words])
  const { port } = await firstJson(running)
  return { process: running.process, address: `127.0.0.1:${String(port)}` }
}

const socketOf = (world: World) => join(world.directory, 'feed.sock')

async function readMetrics(world: World): Promise<Readonly<Record<string, number>>> {
  const status = await succeeds(world.dsc('feed', 'status', '--socket', socketOf(world), '--json'))
  return JSON.parse(status.stdout).metrics
}

/** Starts a feed over `nodes` and reads two epochs from it, byte by byte; calls `atStep` before each step. */
async function readThroughFeed(
  world: World,
  nodes: readonly string[],
  words: readonly string[],
  atStep: (step: number) => unknown,
) {
  const socketPath = socketOf(world)
  const running = world.start([
    ...['feed', 'serve', '--from', nodes.join(','), '--socket', socketPath, '--seed', `${SEED}`],
    ...['--k', '16', '--memory', '1MiB', '--no-next', '--json', ...words],
  ])
  await firstJson(running)
  const client = await openTestFeedClient(socketPath, { batch: BATCH, depth: 1 })
  for (let epoch = 0; epoch < 2; epoch++) {
    const ids: number[] = []
    for await (const batch of client.read({ epoch, run: `${epoch}` })) {
      await atStep(30 * epoch + batch.step)
      for (const [i, id] of batch.ids.entries())
        assert.ok(batch.data[i]!.equals(sampleBytes(id, lengthOf(id))), `bytes of sample ${id}`)
      ids.push(...batch.ids)
    }
    assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })])
  }
  client.close()
  const counts = await readMetrics(world)
  running.process.kill('SIGTERM')
  assert.equal((await running.finished).code, 0, (await running.finished).stderr)
  return (name: string) => counts[`dsc_feed_${name}_total`]!
}

for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
  test(`a storage node that gets ${signal} in mid-epoch is replaced by its replica: the same samples in the same order`, async (context) => {
    const world = await makeSamplesWorld(context)
    const nodes = [await startStorage(world), await startStorage(world)]
    const addresses = nodes.map((node) => node.address)
    const count = await readThroughFeed(world, addresses, ['--layout', 'full'], (step) => {
      if (step === 7) nodes[1]!.process.kill(signal)
    })
    assert.ok(count('failovers') > 0)
    assert.ok(count('breakers_opened') >= 1) // more where the other one is silent for too long on a busy machine
    assert.equal(count('fallback_samples'), 0)
  })
}

test('a storage node that is stopped for a while is asked again when it goes on', async (context) => {
  const world = await makeSamplesWorld(context)
  const nodes = [await startStorage(world), await startStorage(world)]
  const addresses = nodes.map((node) => node.address)
  const secondIs = (isUp: 0 | 1) =>
    waitFor(`the second node to be ${isUp ? 'asked again' : 'given up'}`, async () => {
      return (await readMetrics(world))['dsc_feed_node_up{node="1"}'] === isUp
    })
  const count = await readThroughFeed(world, addresses, ['--layout', 'full'], async (step) => {
    if (step === 7) nodes[1]!.process.kill('SIGSTOP')
    if (step !== 20) return
    await secondIs(0)
    nodes[1]!.process.kill('SIGCONT')
    await secondIs(1)
    nodes[0]!.process.kill('SIGKILL')
  })
  assert.ok(count('breakers_opened') >= 2)
})

test('when every storage node is gone the samples are read from S3 by ranges, in the same order', async (context) => {
  const bucket = await server.makeBucket()
  const world = await makeSamplesWorld(context, {
    datasets: { train: { source: `s3://${bucket}/train/`, endpoint: server.endpoint } },
  })
  for (let id = 0; id < COUNT; id++) {
    const name = `${String(id).padStart(6, '0')}.bin`
    await server.putObject(bucket, `train/${name}`, readFileSync(join(world.directory, 'samples', name)))
  }
  const node = await startStorage(world)
  const count = await readThroughFeed(world, [node.address], ['--fallback', 'train'], (step) => {
    if (step === 7) node.process.kill('SIGKILL')
  })
  assert.ok(count('fallback_samples') > COUNT)
})

test('with --tls the certificates of the agents protect the way from the storage nodes', async (context) => {
  const world = await makeSamplesWorld(context)
  const { certFile, keyFile } = makeCertificate(world.directory)
  appendFileSync(
    join(world.directory, 'dsc.yaml'),
    `agent: { tls: { certFile: ${certFile}, keyFile: ${keyFile}, caFile: ${certFile} } }\n`,
  )
  const node = await startStorage(world, '--tls')
  const open = await world.dsc('feed', 'bench', '--from', node.address)
  assert.match(open.stderr, /storage node .* (hung up|does not answer|cannot be reached)/)
  const count = await readThroughFeed(world, [node.address], ['--tls'], () => {})
  assert.equal(count('failovers'), 0)
})
