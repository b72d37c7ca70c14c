// How long a client of the gateway waits for the first byte of an object that is not here yet, beside asking the origin
// over the same link while the same staging goes on, and over an idle link.
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { DSC, startTalking } from '../harness/processes.mjs'
import { KEYS, makeFiles, s3Dataset, startShapedStore, writeSettings } from '../harness/stores.mjs'
import { median } from '../harness/tables.mjs'

const LINK = { bytesPerSecond: 125_000_000, delayMs: 20 }
const OBJECT_BYTES = 100 * 1024
const ASKED = 40
const nameOf = (index) => `${String(index).padStart(6, '0')}.bin`

/** One staging per round, with reads of objects far from where its listing order is, alternating between the two. */
export async function measureFirstBytes(bench, { rounds, scale }) {
  // So many that the staging goes on while the last of them are asked for.
  const objects = Math.max(8000, Math.round(20_000 * scale))
  const bucket = join(bench.makeFolder('arriving'), 'bucket')
  makeFiles(join(bucket, 'data'), { objects, bytes: OBJECT_BYTES, pathOf: nameOf })
  const results = []
  for (let round = 0; round < rounds; round++) results.push(await measureOnce(bench, { bucket, objects }))
  return results
}

async function measureOnce(bench, { bucket, objects }) {
  const { child: store, endpoint } = await startShapedStore(bench, bucket, LINK)
  await fetch(`${endpoint}/bench?list-type=2&prefix=data/`).then((answer) => answer.text()) // it reads its folder once
  const cwd = bench.makeFolder('node')
  writeSettings(cwd, { data: s3Dataset(endpoint, 'data/') }, { agent: { listen: '127.0.0.1:0' } })
  const words = [...DSC, 'agent', '--gateway', '127.0.0.1:0', '--json']
  const { child: dsc, line } = await startTalking(bench, words, { cwd, env: { ...process.env, ...KEYS } })
  const { gateway, url } = JSON.parse(line)
  const keyOf = (index) => `/bench/data/${nameOf(index)}`
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const [idle, arriving, beside] = [[], [], []]
  for (let i = 0; i < ASKED; i++) idle.push(await ask(endpoint + keyOf(objects - 1 - i), agent))
  const first = await ask(gateway + keyOf(objects - 1), agent)
  for (let i = 1; i <= ASKED; i++) {
    const key = keyOf(objects - 1 - i * 7)
    beside.push(await ask(endpoint + key, agent))
    arriving.push(await ask(gateway + key, agent))
  }
  agent.destroy()
  await requireArriving(url)
  dsc.kill()
  store.kill()
  return { first, idle: medians(idle), beside: medians(beside), arriving: medians(arriving) }
}

/** Throws where the staging was over before all was asked for. */
async function requireArriving(url) {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const sent = Number(/^dsc_gateway_sent_bytes_total\{from="ready"\} (\d+)/m.exec(metrics)?.[1] ?? 0)
  if (sent > 0) throw new Error(`${sent} bytes were read from the ready copy: use a larger --scale`)
}

/** How long the first byte took, and the last, ms. */
async function ask(url, agent) {
  const beganMs = performance.now()
  const [response] = await once(get(url, { agent }), 'response')
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`)
  await once(response, 'readable')
  const firstMs = performance.now() - beganMs
  response.resume()
  await once(response, 'end')
  return { firstMs, lastMs: performance.now() - beganMs }
}

function medians(answers) {
  const of = (name) => median(answers.map((answer) => answer[name]))
  return { firstMs: of('firstMs'), lastMs: of('lastMs') }
}
