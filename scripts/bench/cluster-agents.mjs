// Three real agents, a real PostgreSQL and a store in memory, all on this machine; for cluster.mjs.
import { randomBytes } from 'node:crypto'
import { makeCluster } from '../../dist/testing/cluster.js'
import { STORE_ENVIRONMENT } from '../../dist/testing/cluster-store.js'
import { startCountingStore } from '../../dist/testing/counting-store.js'

const MEBIBYTE = 1024 ** 2
const SHAPES = [
  { name: 'large', count: 8, bytes: 64 * MEBIBYTE },
  { name: 'small', count: 2000, bytes: 100 * 1024 },
]
const WARM_ROUNDS = 30

/** Stages each dataset on the three nodes in turn; then prepares a ready one again and again. */
export async function measureAgents() {
  const ends = []
  const context = { after: (end) => ends.unshift(end) }
  try {
    const objects = new Map()
    for (const { name, count, bytes } of SHAPES) {
      for (let index = 0; index < count; index++) objects.set(`${name}/${index}.bin`, randomBytes(bytes))
    }
    const store = await startCountingStore(objects)
    ends.unshift(() => store.close())
    const at = { endpoint: store.endpoint, region: 'us-east-1', pathStyle: true }
    const cluster = await makeCluster(context, {
      nodes: ['node-a', 'node-b', 'node-c'],
      datasets: Object.fromEntries(
        SHAPES.map(({ name }) => [name, { source: `s3://bucket/${name}/`, ...at }]),
      ),
      environment: STORE_ENVIRONMENT,
    })
    for (const node of cluster.nodes) await node.startAgent()
    const [a, b, c] = cluster.nodes
    const rows = []
    for (const { name, count, bytes } of SHAPES) {
      for (const [node, from] of [
        [a, 'the store'],
        [b, 'node-a'],
        [c, 'node-a and node-b'],
      ]) {
        const sentBefore = store.sentBytes()
        const startMs = performance.now()
        const ended = await node.dsc('prepare', name, '--json', '--task', `on ${node.name}`)
        const seconds = (performance.now() - startMs) / 1000
        if (ended.code !== 0) throw new Error(ended.stderr)
        const storeShare = (store.sentBytes() - sentBefore) / (count * bytes)
        rows.push({ name, count, bytes, from, seconds, storeShare })
      }
    }
    const warmMs = []
    for (let round = 0; round < WARM_ROUNDS; round++) {
      const startMs = performance.now()
      await b.dsc('prepare', 'small', '--task', `again ${round}`)
      warmMs.push(performance.now() - startMs)
    }
    return { rows, warmMs }
  } finally {
    for (const end of ends) await end()
  }
}
