// What the page of an agent costs it, with 1,000 nodes × 500 datasets in a record of SQLite: memory before anybody looks,
// while somebody looks, and after they left; and the time of each answer.
// --rest-s: how long the agent is left alone before its memory is looked at again
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort } from '../../dist/testing/free-port.js'
import { fillRecord } from './harness/filled-record.mjs'
import { DSC, memoryOf, startServer } from './harness/processes.mjs'
import { untilUp, writeSettings } from './harness/stores.mjs'
import { table } from './harness/tables.mjs'

const ASKED = [
  ...['nodes?count=50&sort=-disk', 'matrix?count=40&node-count=50', 'matrix?count=40&from=400&sort=-bytes'],
  ...['waits', 'copies?node=gpu-0500'],
]

export const benchmark = {
  options: { nodes: 1000, datasets: 500, 'rest-s': 75 },
  smoke: { nodes: 3, datasets: 10, 'rest-s': 0 },
  run: agentPage,
}

async function agentPage(bench) {
  const cwd = bench.makeFolder('page')
  const port = await findFreePort()
  const nodes = bench.given.nodes
  await fillRecord(join(cwd, 'record.db'), { nodes, datasets: bench.given.datasets, isLeased: false })
  writeSettings(cwd, {}, { node: 'viewer', agent: { listen: `127.0.0.1:${port}` } })
  const { pid } = startServer(bench, [...DSC, 'agent'], { cwd, stdio: 'ignore' })
  const { url } = await untilUp({ url: `http://127.0.0.1:${port}/` })
  await sleep(2000)
  const memory = [['before anybody looks', memoryOf(pid, 'VmRSS')]]
  const startMs = performance.now()
  const stop = new AbortController()
  const most = await readLive(await fetch(`${url}v1/page/live`, { signal: stop.signal }), { pid, nodes })
  memory.push([`most while it reads all nodes, ${((performance.now() - startMs) / 1000).toFixed(1)} s`, most])
  const answers = []
  for (const what of ASKED) {
    const askedMs = performance.now()
    const bytes = (await (await fetch(`${url}v1/page/${what}`)).arrayBuffer()).byteLength
    answers.push([`\`${what}\``, (performance.now() - askedMs).toFixed(0), (bytes / 1024).toFixed(0)])
  }
  memory.push(['while somebody looks', memoryOf(pid, 'VmRSS')])
  stop.abort()
  await sleep(1000 * bench.given['rest-s'])
  memory.push([`${bench.given['rest-s']} s after they left`, memoryOf(pid, 'VmRSS')])
  const rows = memory.map(([when, bytes]) => [when, Math.round(bytes / 2 ** 20)])
  bench.section('page', table(['the agent', 'MiB'], rows), table(['asked', 'ms', 'KiB'], answers))
}

/** Reads live messages until all nodes are read. Returns the most memory that the agent took meanwhile. */
async function readLive(answer, { pid, nodes }) {
  let most = 0
  let text = ''
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    most = Math.max(most, memoryOf(pid, 'VmRSS'))
    text += piece
    const messages = text.split('\n\n').filter((message) => message.includes('data: '))
    const last = messages.length > 0 ? JSON.parse(messages.at(-1).split('data: ')[1]) : undefined
    if (last?.nodesRead >= nodes) break
  }
  return most
}
