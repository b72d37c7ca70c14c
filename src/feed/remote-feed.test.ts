import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDscError } from '../failure/dsc-error.js'
import { makeCertificate } from '../testing/certificate.js'
import { makeTestFolder, sampleBytes, writeSamples } from '../testing/sample-folder.js'
import { openRemoteFeeder, type RemoteOptions } from './open-remote-feeder.js'
import { shuffleSamples } from './plan/order.js'
import { indexSamples, type SampleFolder } from './samples/index-samples.js'
import { openStorageServer, type StorageServer } from './storage/storage-server.js'

const COUNT = 300
const lengthOf = (id: number) => 2000 + ((id * 91) % 3000)

async function makeFolder(context: TestContext): Promise<SampleFolder> {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), COUNT, lengthOf)
  return indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
}

async function serve(context: TestContext, folder: SampleFolder, extra: object = {}): Promise<StorageServer> {
  const server = await openStorageServer({ folder, host: '127.0.0.1', port: 0, ...extra })
  context.after(() => server.close().catch(() => {}))
  return server
}

/** Reads two epochs and compares every byte; calls `atStep` before each step. */
async function readAll(
  context: TestContext,
  options: RemoteOptions,
  atStep: (step: number) => unknown = () => {},
) {
  const opened = await openRemoteFeeder(options, {
    seed: 9,
    memoryBytes: 2 ** 20,
    k: 16,
    threads: 1,
    isCarrying: false,
  })
  context.after(() => opened.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = opened.feeder.openStream(rank, 2)
  for (let epoch = 0; epoch < 2; epoch++) {
    const ids: number[] = []
    for (let step = 0; step < 30; step++) {
      await atStep(30 * epoch + step)
      const batch = await stream.read(epoch, step)
      for (const [i, slot] of batch.slots.entries()) {
        const bytes = Buffer.alloc(lengthOf(slot.sample))
        opened.arenaFile.read(bytes, batch.offsets[i]!)
        assert.ok(bytes.equals(sampleBytes(slot.sample, bytes.length)), `bytes of sample ${slot.sample}`)
        ids.push(slot.sample)
      }
      stream.release(batch)
    }
    assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: 9, epoch })])
  }
  return opened.feeder.source.counters!()
}

test('a feed over two stripes delivers the order of one machine', async (context) => {
  const folder = await makeFolder(context)
  const nodes = [
    await serve(context, folder, { stripe: { index: 0, count: 2 } }),
    await serve(context, folder, { stripe: { index: 1, count: 2 } }),
  ]
  const counters = await readAll(context, { nodes, layout: 'striped', fallback: undefined, token: undefined })
  assert.equal(counters.failovers, 0)
  // Half of the samples in each of two epochs, and what was read ahead of the third.
  for (const { counts } of nodes)
    assert.ok(counts.samples >= COUNT && counts.samples < COUNT + 60, `${counts.samples}`)
})

test('a node that dies in mid-epoch is replaced by its replica without a change of order', async (context) => {
  const folder = await makeFolder(context)
  const nodes = [await serve(context, folder), await serve(context, folder)]
  const counters = await readAll(
    context,
    { nodes, layout: 'full', fallback: undefined, token: undefined },
    (step) => step === 7 && nodes[1]!.close(),
  )
  assert.ok(counters.failovers! > 0)
  assert.equal(counters.fallback_samples, 0)
})

test('when all nodes are gone the fallback takes over without a change of order', async (context) => {
  const folder = await makeFolder(context)
  const node = await serve(context, folder)
  const counters = await readAll(
    context,
    { nodes: [node], layout: 'full', fallback: { kind: 'folder', folder }, token: undefined },
    (step) => step === 7 && node.close(),
  )
  assert.ok(counters.fallback_samples! > 0)
})

/** A relay in front of `target` whose answers `change` may alter, and which come `delayMs` late. */
function relay(
  context: TestContext,
  target: StorageServer,
  change: (chunk: Buffer) => Buffer | undefined,
  delayMs = 0,
) {
  const sockets = new Set<Socket>()
  const server: Server = createServer((near) => {
    const far = connect(target.port, target.host)
    sockets.add(near).add(far)
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    far.on('data', (chunk) => {
      const changed = change(chunk)
      if (changed && delayMs > 0) setTimeout(() => near.destroyed || near.write(changed), delayMs)
      else if (changed) near.write(changed)
    })
  })
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new Promise<{ host: string; port: number }>((resolve) =>
    server.listen(0, '127.0.0.1', () =>
      resolve({ host: '127.0.0.1', port: (server.address() as { port: number }).port }),
    ),
  )
}

test('a node that sends damaged bytes is found out by the checksum, and the samples come from its replica', async (context) => {
  const folder = await makeFolder(context)
  const good = await serve(context, folder)
  let seen = 0
  const bad = await relay(context, good, (chunk) => {
    seen += chunk.length
    if (seen > 20_000 && chunk.length > 4000) chunk[chunk.length - 700]! ^= 1
    return chunk
  })
  const counters = await readAll(context, {
    nodes: [bad, good],
    layout: 'full',
    fallback: undefined,
    token: undefined,
  })
  assert.ok(counters.corrupt! > 0)
})

test('a node that falls silent costs one deadline, then its replica answers', async (context) => {
  const folder = await makeFolder(context)
  const good = await serve(context, folder)
  let chunks = 0
  const silent = await relay(context, good, (chunk) => (++chunks > 8 ? undefined : chunk))
  const counters = await readAll(context, {
    nodes: [silent, good],
    layout: 'full',
    fallback: undefined,
    token: undefined,
  })
  assert.ok(counters.failovers! + counters.hedges! > 0)
})

test('a node that is a hundred times slower than its replica is asked on, its missed samples of the replica too', async (context) => {
  const folder = await makeFolder(context)
  const good = await serve(context, folder)
  const slow = await relay(context, good, (chunk) => chunk, 150)
  const counters = await readAll(context, {
    nodes: [slow, good],
    layout: 'full',
    fallback: undefined,
    token: undefined,
  })
  assert.ok(counters.hedges! > 0)
  assert.deepEqual([counters.failovers, counters.breakers_opened, counters.corrupt], [0, 0, 0])
})

test('what a client that goes elsewhere in the epoch no longer needs is cancelled on its way', async (context) => {
  const folder = await makeFolder(context)
  const node = await serve(context, folder)
  const far = await relay(context, node, (chunk) => chunk, 100)
  const opened = await openRemoteFeeder(
    { nodes: [far], layout: 'full', fallback: undefined, token: undefined },
    { seed: 9, memoryBytes: 2 ** 20, k: 16, threads: 1, isCarrying: false },
  )
  context.after(() => opened.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = opened.feeder.openStream(rank, 2)
  await stream.start(0, 0)
  while (node.counts.requests === 0) await sleep(2)
  await stream.start(0, 25)
  const batch = await stream.read(0, 25)
  assert.equal(node.counts.cancelled, 2)
  const order = shuffleSamples({ sampleCount: COUNT, seed: 9, epoch: 0 })
  assert.deepEqual(
    batch.slots.map((slot) => slot.sample),
    [...order.subarray(250, 260)],
  )
  assert.equal(opened.feeder.source.counters!().failovers, 0)
})

test('requests to a far node grow to what its answers are measured to cost, and the order stays', async (context) => {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), COUNT, () => 40_000)
  const samples = await indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
  const far = await relay(context, await serve(context, samples), (chunk) => chunk, 30)
  const opened = await openRemoteFeeder(
    { nodes: [far], layout: 'full', fallback: undefined, token: undefined },
    { seed: 9, memoryBytes: 2 ** 25, threads: 1, isCarrying: false },
  )
  context.after(() => opened.close())
  const { feeder } = opened
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = feeder.openStream(rank, 2)
  const before = feeder.memory().k
  const kFrom = () => feeder.sizing.from
  assert.equal(kFrom(), 'size')
  for (let epoch = 0; epoch < 4 || kFrom() !== 'measured'; epoch++) {
    const ids: number[] = []
    for (let step = 0; step < 30; step++) {
      const batch = await stream.read(epoch, step)
      ids.push(...batch.slots.map((slot) => slot.sample))
      stream.release(batch)
    }
    assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: 9, epoch })])
  }
  assert.ok(feeder.sizing.cost()!.fixedMs >= 25)
  assert.ok(feeder.memory().k > before, `k = ${feeder.memory().k}, it was ${before}`)
})

test('a node that was too slow with a missed sample is told to leave it when nothing else was asked for', async (context) => {
  const folder = await makeFolder(context)
  const [good, late] = [await serve(context, folder), await serve(context, folder)]
  const slow = await relay(context, late, (chunk) => chunk, 150)
  const opened = await openRemoteFeeder(
    { nodes: [slow, good], layout: 'full', fallback: undefined, token: undefined },
    { seed: 9, memoryBytes: 2 ** 20, k: 1, threads: 1, isConformance: true, isCarrying: false },
  )
  context.after(() => opened.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = opened.feeder.openStream(rank, 2)
  await stream.start(0, 0)
  stream.release(await stream.read(0, 0))
  const { hedges, failovers } = opened.feeder.source.counters!()
  assert.ok(hedges! > 0)
  assert.equal(failovers, 0)
  while (late.counts.cancelled === 0) await sleep(2)
})

/** A certificate for 127.0.0.1 that vouches for itself. */
function readCertificate(context: TestContext): { cert: string; key: string } {
  const { certFile, keyFile } = makeCertificate(makeTestFolder(context))
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
}

test('a feed reads from storage nodes with TLS, of which nothing can be read on the way', async (context) => {
  const folder = await makeFolder(context)
  const tls = readCertificate(context)
  const node = await serve(context, folder, { tls, token: 'secret' })
  const seen: Buffer[] = []
  const between = await relay(context, node, (chunk) => {
    seen.push(Buffer.from(chunk))
    return chunk
  })
  await readAll(context, {
    ...{ nodes: [between], layout: 'full', fallback: undefined, token: 'secret' },
    tls: { ca: tls.cert },
  })
  const bytes = Buffer.concat(seen)
  assert.ok(bytes.length > folder.table.totalBytes)
  assert.equal(bytes.indexOf('DSCB'), -1)
  assert.equal(bytes.indexOf(sampleBytes(5, lengthOf(5)).subarray(0, 64)), -1)
})

for (const { name, ca, isNodeEncrypted } of [
  { name: 'whose certificate nobody vouches for', ca: undefined, isNodeEncrypted: true },
  { name: 'whose certificate another authority made', ca: 'another', isNodeEncrypted: true },
  { name: 'that does not encrypt', ca: 'another', isNodeEncrypted: false },
]) {
  test(`a feed that wants TLS refuses a storage node ${name}`, async (context) => {
    const folder = await makeFolder(context)
    const node = await serve(context, folder, { tls: isNodeEncrypted ? readCertificate(context) : undefined })
    const tls = { ca: ca && readCertificate(context).cert }
    await assert.rejects(
      openRemoteFeeder(
        { nodes: [node], layout: 'full', fallback: undefined, token: undefined, tls },
        { memoryBytes: 2 ** 20 },
      ),
      (error) => isDscError(error, 'FEED_GONE'),
    )
  })
}

for (const { name, change } of [
  { name: 'of another version of the data', change: 'fingerprint' },
  { name: 'with another token', change: 'token' },
  { name: 'that hold another stripe than their place says', change: 'stripe' },
] as const) {
  test(`storage nodes ${name} are refused before anything is read`, async (context) => {
    const folder = await makeFolder(context)
    const stripe = change === 'stripe' ? { index: 1, count: 2 } : undefined
    const node = await serve(context, folder, { token: 'right', stripe })
    const other = await makeFolder(context)
    if (change === 'fingerprint') other.table.bytes[50]! ^= 1
    const { openSampleTable } = await import('./samples/sample-table.js')
    const fallback = {
      kind: 'folder',
      folder: { ...other, table: openSampleTable(other.table.bytes) },
    } as const
    const token = change === 'token' ? 'wrong' : 'right'
    await assert.rejects(
      openRemoteFeeder({ nodes: [node], layout: 'striped', fallback, token }, { memoryBytes: 2 ** 20 }),
      (error) => isDscError(error, 'FEED_STATE_MISMATCH', 'FEED_PROTOCOL'),
    )
  })
}
