// Reads epochs of a dataset and goes on where it was when it is started again:
//   node scripts/examples/read-feed.mjs <dataset or folder> [<state file>] [<socket of dsc feed serve>]
// In a program that has dsc installed: import { openFeed } from 'dsc'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { openFeed } from '../../dist/exports/index.js'

const [dataset, stateFile = 'feed-state.json', socket] = process.argv.slice(2)
if (!dataset) throw new Error('usage: read-feed.mjs <dataset or folder> [<state file>] [<socket>]')
await using feed = await openFeed({ ...(socket ? { socket } : { dataset }), batchSize: 8, seed: 42 })
if (existsSync(stateFile)) feed.seek(JSON.parse(readFileSync(stateFile, 'utf8')))
const from = feed.state()
let bytes = 0
try {
  for await (const batch of feed) {
    for (const { data } of batch) bytes += data.length
    save(feed.state())
  }
  process.stdout.write(`epoch ${from.epoch} from sample ${from.position} on: ${bytes} bytes\n`)
} catch (error) {
  if (error.code !== 'FEED_GONE') throw error
  save(error.state) // where a feed that is started again goes on
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

/** All or nothing, so that a crash leaves the state before it. */
function save(state) {
  writeFileSync(`${stateFile}.new`, JSON.stringify(state))
  renameSync(`${stateFile}.new`, stateFile)
}
