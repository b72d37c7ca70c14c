import assert from 'node:assert/strict'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openFeedEngine } from '../feed/engine/open-feed-engine.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { nodeSupply, type RemoteOptions } from '../feed/sources/node-supply.js'
import { StorageServer } from '../feed/storage/storage-server.js'
import { indexSamples, type SampleFolder } from '../samples/index-samples.js'
import { listenLocally } from './listen-locally.js'
import { makeTestFolder, verifiedIds, writeSamples } from './sample-folder.js'

export const COUNT = 300
export const lengthOf = (id: number) => 2000 + ((id * 91) % 3000)

/** An indexed folder of `COUNT` samples of `lengthOf` bytes each. */
export async function makeFolder(context: TestContext): Promise<SampleFolder> {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), COUNT, lengthOf)
  return indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
}

/** An in-process storage node that serves the folder until the test ends. */
export async function serve(
  context: TestContext,
  folder: SampleFolder,
  extra: object = {},
): Promise<StorageServer> {
  const server = await StorageServer.open({ folder, host: '127.0.0.1', port: 0, ...extra })
  context.after(() => server.close().catch(() => {}))
  return server
}

/** Reads two epochs and compares every byte; calls `atStep` before each step. */
export async function readAll(
  context: TestContext,
  options: RemoteOptions,
  atStep: (step: number) => unknown = () => {},
) {
  const engine = openFeedEngine(await nodeSupply(options), {
    seed: 9,
    memoryBytes: 2 ** 20,
    k: 16,
    threads: 1,
    isCarrying: false,
  })
  context.after(() => engine.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = engine.openStream(rank, 2)
  for (let epoch = 0; epoch < 2; epoch++) {
    const ids: number[] = []
    for (let step = 0; step < 30; step++) {
      await atStep(30 * epoch + step)
      const batch = await stream.read(epoch, step)
      ids.push(...verifiedIds(engine, batch, lengthOf))
      stream.release(batch)
    }
    assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: 9, epoch })])
  }
  return engine.source.counters()
}

/** A relay in front of `target`; `change` may alter its answers, which arrive `delayMs` (or what it returns) late. */
export async function relay(
  context: TestContext,
  target: StorageServer,
  change: (chunk: Buffer) => Buffer | undefined,
  delayMs: number | (() => number) = 0,
) {
  const sockets = new Set<Socket>()
  const server: Server = createServer((near) => {
    const far = connect(target.port, target.host)
    sockets.add(near).add(far)
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    far.on('data', (chunk) => {
      const changed = change(chunk)
      const waitMs = typeof delayMs === 'number' ? delayMs : delayMs()
      if (changed && waitMs > 0) setTimeout(() => near.destroyed || near.write(changed), waitMs).unref()
      else if (changed) near.write(changed)
    })
  })
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { host: '127.0.0.1', port: await listenLocally(server) }
}
