// One epoch of a dataset that is not here, over openFeed: prints when the first batch and the end came, seconds from
// COLD_BEGAN_MS (Unix epoch, ms). Usage: cold-feed.mjs DSC_YAML DATASET SEED. Started by cold-nodes.mjs on each node.
import { dirname, join } from 'node:path'
import { openFeed } from '../../dist/exports/index.js'

const [configPath, dataset, seed] = process.argv.slice(2)
const beganMs = Number(process.env.COLD_BEGAN_MS)
const seconds = () => (Date.now() - beganMs) / 1000
const feed = await openFeed({
  ...{ dataset, batchSize: 64, seed: Number(seed), memoryBytes: 64 * 2 ** 20, configPath },
  cacheFolder: join(dirname(configPath), 'tables'),
})
let first
for await (const batch of feed) if (batch.length > 0) first ??= seconds()
const epoch = seconds()
await feed.close()
process.stdout.write(JSON.stringify({ first, epoch }))
