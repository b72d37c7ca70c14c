import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { SampleFolder } from '../../samples/index-samples.js'
import { openTestFeedClient } from '../../testing/feed-client.js'
import { COUNT, makeFolder, serve } from '../../testing/storage-node.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { nodeSupply } from '../sources/node-supply.js'
import type { SampleSupply } from '../sources/sample-supply.js'
import { stripeSupply } from '../sources/stripe-supply.js'
import type { StorageAddress } from '../storage/storage-client.js'
import { SessionServer } from './session-server.js'

interface Lossy {
  readonly folder: SampleFolder
  readonly nodes: readonly StorageAddress[]
  readonly onNodeLost: (message: string) => void
}

/** Supplies samples from two nodes, each with every other sample of a folder; the fallback has all of them. */
async function openStriped({ folder, nodes, onNodeLost }: Lossy): Promise<SampleSupply> {
  const { root, table } = folder
  return stripeSupply({
    merged: { table, placement: Uint16Array.from({ length: COUNT }, (_, sample) => sample % 2) },
    nodes: nodes.map((address) => ({ address })),
    replicas: [],
    reader: {
      name: 'a store',
      read: async (file, offset, length) => readFileSync(join(root, file)).subarray(offset, offset + length),
      close: async () => {},
    },
    tls: undefined,
    onNodeLost,
  })
}

const openReplicated = ({ nodes, onNodeLost }: Lossy) =>
  nodeSupply({ nodes, layout: 'full', fallback: undefined, token: undefined, onNodeLost })

for (const { what, open } of [
  { what: 'storage node', open: openReplicated },
  { what: 'stripe', open: openStriped },
]) {
  test(`a feed that lost a ${what} tells one client and its own log, once, and counts it`, async (context) => {
    const folder = await makeFolder(context)
    const nodes = [await serve(context, folder), await serve(context, folder)]
    const logged: string[] = []
    const supply = await open({ folder, nodes, onNodeLost: (message) => void logged.push(message) })
    const engine = openFeedEngine(supply, {
      seed: 9,
      memoryBytes: 2 ** 20,
      k: 8,
      threads: 1,
      isCarrying: false,
    })
    const server = await SessionServer.open({ engine, socketPath: join(folder.root, '..', 's') })
    context.after(async () => {
      await server.close()
      await engine.close()
    })
    const metric = (name: string) =>
      Number(server.statusText().match(new RegExp(`^dsc_feed_${name} (.*)$`, 'm'))![1])
    const clients = await Promise.all(
      [0, 1].map((rank) => openTestFeedClient(server.socketPath, { rank, world: 2, batch: 5, depth: 1 })),
    )
    const read = async (epoch: number) => {
      const counts = clients.map(async (client) => {
        let count = 0
        for await (const { ids } of client.read({ epoch, run: `${epoch}` })) count += ids.length
        return count
      })
      assert.deepEqual(await Promise.all(counts), [COUNT / 2, COUNT / 2])
    }
    await read(0)
    const told = () => clients.flatMap(({ notes }) => notes)
    assert.deepEqual(
      [told().length, metric('node_up\\{node="1"\\}'), metric('breakers_opened_total')],
      [0, 1, 0],
    )
    await nodes[1]!.close()
    for (const epoch of [1, 2]) await read(epoch)
    assert.ok(metric('requests_total\\{rank="0"\\}') > 10, 'many requests')
    assert.equal(told().length, 1)
    assert.match(
      told()[0]!,
      /^dsc: the feed has lost storage node 1 \(127\.0\.0\.1:\d+\); its samples come from elsewhere/,
    )
    assert.deepEqual(logged, told())
    assert.equal(metric('node_up\\{node="0"\\}'), 1)
    assert.equal(metric('node_up\\{node="1"\\}'), 0)
    assert.equal(metric('breakers_opened_total'), 1)
    for (const client of clients) client.close()
  })
}
