// A program for the terminal test and for manual use: fills the record at argv[2] with argv[3] copies on argv[4] nodes
// and argv[5] downloads, then advances the downloads until it is stopped (at once with a 6th argument).
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { advanceStagings, fillRecord } from './example-record.js'

const [path, copies, nodes, stagings, isOnce] = process.argv.slice(2)
const record = await openSqliteRecord(path!)
const running = await fillRecord(record, {
  copies: Number(copies),
  nodes: Number(nodes),
  stagings: Number(stagings),
  nowMs: Date.now(),
})
process.stdout.write('filled\n')
while (isOnce === undefined) {
  await sleep(250)
  await advanceStagings(record, running, 30 * 1024 ** 2, Date.now())
}
await record.close()
