// Nodes in network namespaces of this machine, each with an agent, a root and a shaped cable of its own, a real
// PostgreSQL, and a store behind a cable, too; for swarm.mjs.
import { spawn } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCluster } from '../../dist/testing/cluster.js'
import { STORE_ENVIRONMENT } from '../../dist/testing/cluster-store.js'
import { makeNetwork } from '../../dist/testing/network-namespace.js'

const STORE = fileURLToPath(new URL('shaped-store.mjs', import.meta.url))
/** Agents that are started at once. */
const STARTED_AT_ONCE = 4

/** Makes nodes whose datasets are `<shape>-<run>` for each of `shapes` and `runs`; the store answers after
 * `delayMs`, default 0. Everything ends with `context`. */
export async function makeSwarm(context, options) {
  const { nodes, megabits, storeMegabits, shapes, runs, folder, delayMs = 0 } = options
  const network = await makeNetwork(context, nodes + 1)
  const storeHost = network.hosts[nodes]
  makeObjects(folder, shapes)
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const endpoint = await startStore(context, storeHost, { folder, delayMs })
  const source = (name) => ({
    source: `s3://bench/${name}/`,
    endpoint,
    region: 'us-east-1',
    pathStyle: true,
  })
  const names = Array.from({ length: nodes }, (_, index) => `n${String(index + 1).padStart(2, '0')}`)
  const cluster = await makeCluster(context, {
    nodes: names,
    datasets: Object.fromEntries(
      shapes.flatMap(({ name }) => runs.map((run) => [`${name}-${run}`, source(name)])),
    ),
    environment: STORE_ENVIRONMENT,
    network,
    postgres: [`max_connections=${nodes * 8 + 50}`],
  })
  const waiting = cluster.nodes.values()
  const agents = new Map()
  await Promise.all(
    Array.from({ length: STARTED_AT_ONCE }, async () => {
      for (const node of waiting) {
        const agent = await node.startAgent()
        agents.set(node.name, agent)
        void agent.finished.then((ended) => tellOfFailure(node.name, ended))
      }
    }),
  )
  await Promise.all(network.hosts.slice(0, nodes).map((host) => host.shape(megabits)))
  await storeHost.shape(storeMegabits)
  return { cluster, network, agents, storeHost, readSent: () => readSent(endpoint) }
}

/** An agent that nobody killed says why it ended. */
function tellOfFailure(name, { code, signal, stderr }) {
  if (signal === null)
    process.stderr.write(`the agent of ${name} ended with ${code}: ${stderr.slice(-2000)}\n`)
}

/** Random bytes: nothing on the way can make them smaller. */
function makeObjects(folder, shapes) {
  for (const { name, files, bytes } of shapes) {
    mkdirSync(join(folder, name), { recursive: true })
    const content = Buffer.alloc(bytes)
    for (let index = 0; index < files; index++)
      writeFileSync(join(folder, name, `${String(index).padStart(5, '0')}.bin`), randomFillSync(content))
  }
}

async function startStore(context, host, { folder, delayMs }) {
  const store = [STORE, folder, 'Infinity', String(delayMs), host.address]
  const [program, ...words] = [...host.enter, process.execPath, ...store]
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  context.after(() => void child.kill('SIGKILL'))
  const port = await new Promise((resolve) => child.stdout.once('data', (text) => resolve(Number(text))))
  return `http://${host.address}:${port}`
}

async function readSent(endpoint) {
  return Number(await (await fetch(`${endpoint}/-/sent`)).text())
}
