// Cold feeds on several nodes at once, each in a network namespace with an agent and a shaped cable; for cold.mjs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { STORE_ENVIRONMENT } from '../../dist/testing/cluster-store.js'
import { DSC } from '../../dist/testing/dsc-processes.js'
import { openTestFeedClient } from '../../dist/testing/feed-client.js'
import { makeSwarm } from './swarm-world.mjs'

/** So slow that the cables are the limit, and not two processors that do what all nodes do. */
const CABLE = { megabits: 100, delayMs: 20 }
const OBJECTS = 1000
const OBJECT_BYTES = 100 * 1024
const BATCH = 64

/** For each of `counts`, feeds on so many nodes of a dataset that none of them has. */
export async function measureNodes({ counts, folder }) {
  const ends = []
  const context = { after: (end) => ends.unshift(end) }
  const shape = { name: 'objects', files: OBJECTS, bytes: OBJECT_BYTES }
  const total = OBJECTS * OBJECT_BYTES
  try {
    const swarm = await makeSwarm(context, {
      ...{ nodes: Math.max(...counts), megabits: CABLE.megabits, storeMegabits: CABLE.megabits },
      ...{ shapes: [shape], runs: counts.map(String), folder: join(folder, 'nodes'), delayMs: CABLE.delayMs },
    })
    const results = []
    for (const nodes of counts) {
      const before = { sent: await swarm.readSent(), processor: readProcessor() }
      const runs = await Promise.all(
        swarm.cluster.nodes.slice(0, nodes).map((node, index) => {
          const { enter } = swarm.network.hosts[index]
          return feed({ enter, node, dataset: `objects-${nodes}`, seed: index })
        }),
      )
      const processor = busyShare(before.processor, readProcessor())
      const copies = ((await swarm.readSent()) - before.sent) / total
      const [first, epoch] = [runs.map((run) => run.first), runs.map((run) => run.epoch)]
      results.push({ nodes, first, epoch, copies, processor, objects: OBJECTS, bytes: total, ...CABLE })
      process.stderr.write(
        `${nodes} nodes: first ${first.map((each) => each.toFixed(2))} s, epoch ${epoch.map((each) => each.toFixed(1))} s, ${copies.toFixed(3)} copies\n`,
      )
    }
    return results
  } finally {
    for (const end of ends) await end()
  }
}

/** One epoch on one node, from the start of the process that a job's first client starts: seconds. */
async function feed({ enter, node, dataset, seed }) {
  const beganMs = performance.now()
  const seconds = () => (performance.now() - beganMs) / 1000
  const socketPath = join(dirname(node.configPath), `${dataset}.sock`)
  const words = ['feed', 'serve', dataset, '--seed', `${seed}`, '--memory', '64MiB', '--socket', socketPath]
  const [program, ...rest] = [...enter, ...DSC, ...words, '--config', node.configPath, '--json']
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...STORE_ENVIRONMENT },
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const isReady = await Promise.race([once(child.stdout, 'data').then(() => true), ended.then(() => false)])
  if (!isReady) throw new Error(`the feed of ${node.name} ended with ${await ended}`)
  const client = await openTestFeedClient(socketPath, { batch: BATCH })
  let first
  for await (const { data } of client.read({ epoch: 0 })) if (data.length > 0) first ??= seconds()
  const epoch = seconds()
  client.close()
  child.kill('SIGTERM')
  await ended
  return { first, epoch }
}

function readProcessor() {
  const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).map(Number)
  const total = times.slice(0, 8).reduce((sum, time) => sum + time, 0)
  return { total, idle: times[1] + times[3] + times[4] }
}

function busyShare(before, after) {
  return 1 - (after.idle - before.idle) / (after.total - before.total)
}
