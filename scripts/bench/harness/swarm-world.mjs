// Nodes in network namespaces of this machine, each with an agent, a root and a shaped cable of its own, a real
// PostgreSQL, and a store behind a cable, too.
import { spawnSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { join } from 'node:path'
import { makeCluster } from '../../../dist/testing/cluster.js'
import { STORE_ENVIRONMENT } from '../../../dist/testing/cluster-store.js'
import { makeNetwork } from '../../../dist/testing/network-namespace.js'
import { makeFiles, s3Dataset, startShapedStore } from './stores.mjs'

/** Agents that are started at once. */
const STARTED_AT_ONCE = 4

/** Whether this machine lets us make network namespaces. */
export async function hasNamespaces() {
  const name = `dsc-bench-${process.pid}`
  const made = spawnSync('ip', ['netns', 'add', name]).status === 0
  if (made) spawnSync('ip', ['netns', 'del', name])
  return made
}

/**
 * Makes nodes whose datasets are `<shape>-<run>` for each of `shapes` and `runs`. Everything ends with `context`.
 */
export async function makeSwarm(context, { nodes, megabits, storeMegabits, shapes, runs, folder }) {
  const network = await makeNetwork(context, nodes + 1)
  const storeHost = network.hosts[nodes]
  const pathOf = (index) => `${String(index).padStart(5, '0')}.bin`
  // Random bytes: nothing on the way can make them smaller.
  for (const { name, files, bytes } of shapes)
    makeFiles(join(folder, name), { objects: files, bytes, pathOf, fill: (block) => randomFillSync(block) })
  const link = {
    bytesPerSecond: Number.POSITIVE_INFINITY,
    delayMs: 0,
    enter: storeHost.enter,
    address: storeHost.address,
  }
  const { endpoint, readSent } = await startShapedStore(context, folder, link)
  const datasets = shapes.flatMap(({ name }) =>
    runs.map((run) => [`${name}-${run}`, s3Dataset(endpoint, `${name}/`)]),
  )
  const cluster = await makeCluster(context, {
    nodes: Array.from({ length: nodes }, (_, index) => `n${String(index + 1).padStart(2, '0')}`),
    datasets: Object.fromEntries(datasets),
    ...{ environment: STORE_ENVIRONMENT, network, postgres: [`max_connections=${nodes * 8 + 50}`] },
  })
  const waiting = cluster.nodes.values()
  const agents = new Map()
  const start = async () => {
    for (const node of waiting) {
      const agent = await node.startAgent()
      agents.set(node.name, agent)
      void agent.finished.then((ended) => tellOfFailure(node.name, ended))
    }
  }
  await Promise.all(Array.from({ length: STARTED_AT_ONCE }, start))
  await Promise.all(network.hosts.slice(0, nodes).map((host) => host.shape(megabits)))
  await storeHost.shape(storeMegabits)
  return { cluster, network, agents, readSent }
}

/** An agent that nobody killed says why it ended. */
function tellOfFailure(name, { code, signal, stderr }) {
  if (signal === null)
    process.stderr.write(`the agent of ${name} ended with ${code}: ${stderr.slice(-2000)}\n`)
}
