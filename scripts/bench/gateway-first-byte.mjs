// How long a client of the gateway waits for the first byte of an object that is not here yet, beside asking the origin
// over the same link while the same staging goes on, and over an idle link.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const STORE = fileURLToPath(new URL('./shaped-store.mjs', import.meta.url))
const LINK = { bytesPerSecond: 125_000_000, delayMs: 20 }
const KEYS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' }
const OBJECT_BYTES = 100 * 1024
const ASKED = 40

/** One staging per round, with reads of objects far from where its listing order is, alternating between the two. */
export async function measureFirstBytes(folder, { rounds, scale }) {
  // So many that the staging goes on while the last of them are asked for.
  const objects = Math.max(8000, Math.round(20_000 * scale))
  makeObjects(join(folder, 'bucket'), objects)
  const results = []
  for (let round = 0; round < rounds; round++)
    results.push(await measureOnce(join(folder, `run-${round}`), { folder, objects }))
  return results
}

async function measureOnce(run, { folder, objects }) {
  mkdirSync(run)
  const children = []
  const start = async (words, options) => {
    const child = spawn(process.execPath, words.map(String), {
      stdio: ['ignore', 'pipe', 'inherit'],
      ...options,
    })
    children.push(child)
    return (await once(createInterface({ input: child.stdout }), 'line'))[0]
  }
  try {
    const port = await start([STORE, join(folder, 'bucket'), LINK.bytesPerSecond, LINK.delayMs])
    const origin = `http://127.0.0.1:${port}`
    await fetch(`${origin}/bench?list-type=2&prefix=data/`).then((answer) => answer.text()) // it reads its folder once
    writeFileSync(
      join(run, 'dsc.yaml'),
      `record: sqlite://${run}/record.db\ncache: { root: ${run}/cache }\nagent: { listen: '127.0.0.1:0' }\ndatasets:\n  data: { source: 's3://bench/data/', endpoint: '${origin}', region: us-east-1, pathStyle: true }\n`,
    )
    const printed = await start([DSC, 'agent', '--gateway', '127.0.0.1:0', '--json'], {
      cwd: run,
      env: { ...process.env, ...KEYS },
    })
    const { gateway, url } = JSON.parse(printed)
    const keyOf = (index) => `/bench/data/${String(index).padStart(6, '0')}.bin`
    const idle = []
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < ASKED; i++) idle.push(await ask(origin + keyOf(objects - 1 - i), agent))
    const first = await ask(gateway + keyOf(objects - 1), agent)
    const [arriving, beside] = [[], []]
    for (let i = 1; i <= ASKED; i++) {
      const key = keyOf(objects - 1 - i * 7)
      beside.push(await ask(origin + key, agent))
      arriving.push(await ask(gateway + key, agent))
    }
    agent.destroy()
    await requireArriving(url)
    return { first, idle: medians(idle), beside: medians(beside), arriving: medians(arriving) }
  } finally {
    for (const child of children.toReversed()) {
      child.kill()
      if (child.exitCode === null) await once(child, 'exit')
    }
  }
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

function makeObjects(bucket, objects) {
  mkdirSync(join(bucket, 'data'), { recursive: true })
  const block = Buffer.alloc(OBJECT_BYTES)
  for (let index = 0; index < objects; index++) {
    block.writeUInt32LE(index)
    writeFileSync(join(bucket, 'data', `${String(index).padStart(6, '0')}.bin`), block)
  }
}

function medians(answers) {
  return {
    firstMs: median(answers.map(({ firstMs }) => firstMs)),
    lastMs: median(answers.map(({ lastMs }) => lastMs)),
  }
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
