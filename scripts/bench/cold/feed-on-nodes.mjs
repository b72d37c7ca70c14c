// Cold feeds on several nodes at once, each in a network namespace with an agent and a shaped cable.
import { dirname, join } from 'node:path'
import { STORE_ENVIRONMENT } from '../../../dist/testing/cluster-store.js'
import { DSC } from '../../../dist/testing/dsc-processes.js'
import { openTestFeedClient } from '../../../dist/testing/feed-client.js'
import { startTalking, watchProcessors } from '../harness/processes.mjs'
import { makeSwarm } from '../harness/swarm-world.mjs'

/** So slow that the cables are the limit, and not two processors that do what all nodes do. */
const CABLE = { megabits: 100, delayMs: 20 }
const SHAPE = { name: 'objects', files: 1000, bytes: 100 * 1024 }
const BATCH = 64

/** For each of `counts`, feeds on so many nodes of a dataset that none of them has. */
export async function feedOnNodes(bench, counts) {
  const shape = bench.isSmoke ? { ...SHAPE, files: 2 * BATCH } : SHAPE
  const total = shape.files * shape.bytes
  const swarm = await makeSwarm(bench, {
    ...{ nodes: Math.max(...counts), megabits: CABLE.megabits, storeMegabits: CABLE.megabits },
    ...{
      shapes: [shape],
      runs: counts.map(String),
      folder: bench.makeFolder('nodes'),
      delayMs: CABLE.delayMs,
    },
  })
  const results = []
  for (const nodes of counts) {
    const before = await swarm.readSent()
    const busy = watchProcessors()
    const feeds = swarm.cluster.nodes.slice(0, nodes).map((node, index) => {
      const { enter } = swarm.network.hosts[index]
      return feed(bench, { enter, node, dataset: `objects-${nodes}`, seed: index })
    })
    const runs = await Promise.all(feeds)
    const processor = busy()
    const copies = ((await swarm.readSent()) - before) / total
    const [first, epoch] = ['first', 'epoch'].map((name) => runs.map((run) => run[name]))
    results.push({ nodes, first, epoch, copies, processor, objects: shape.files, bytes: total, ...CABLE })
    bench.progress(`${nodes} nodes: first ${first} s, epoch ${epoch} s, ${copies.toFixed(3)} copies`)
  }
  return results
}

/** One epoch on one node, from the start of the process that a job's first client starts: seconds. */
async function feed(bench, { enter, node, dataset, seed }) {
  const beganMs = performance.now()
  const seconds = () => (performance.now() - beganMs) / 1000
  const socketPath = join(dirname(node.configPath), `${dataset}.sock`)
  const words = ['feed', 'serve', dataset, '--seed', `${seed}`, '--memory', '64MiB', '--socket', socketPath]
  const env = { ...process.env, ...STORE_ENVIRONMENT }
  const { child } = await startTalking(
    bench,
    [...enter, ...DSC, ...words, '--config', node.configPath, '--json'],
    { env },
  )
  const client = await openTestFeedClient(socketPath, { batch: BATCH })
  let first
  for await (const { data } of client.read({ epoch: 0 })) if (data.length > 0) first ??= seconds()
  const epoch = seconds()
  client.close()
  child.kill('SIGTERM')
  return { first, epoch }
}
