import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { makeCluster, TOKEN } from '../testing/cluster.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { makeWorld, waitFor, writeTree } from '../testing/world.js'

/** So long a question of the record is asked before it is given up: who answers sooner has not waited for one. */
const RECORD_PATIENCE_MS = 60_000

/** Status and milliseconds of an answer. */
async function time(url: string): Promise<readonly [number, number]> {
  const beganMs = performance.now()
  const answer = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } })
  await answer.arrayBuffer()
  return [answer.status, performance.now() - beganMs]
}

test('while the record is away agents serve what they know, say so, and one that is started waits', async (context) => {
  const directory = await temporaryDirectory(context)
  await writeTree(directory, { 'a.bin': 'one' })
  const datasets = { scans: { source: `${pathToFileURL(directory)}/` } }
  const { nodes, postgres } = await makeCluster(context, { nodes: ['node-a', 'node-b'], datasets })
  const [a, b] = nodes
  assert.equal((await a!.dsc('prepare', 'scans', '--task', 't')).code, 0)
  await a!.startAgent()
  const file = `${a!.url}/v1/datasets/scans/files/a.bin`
  assert.equal((await time(file))[0], 200)
  await postgres.stop('immediate')
  await new Promise((resolve) => setTimeout(resolve, 600)) // what was just asked is believed no longer
  const waiting = b!.start('agent')
  for (let round = 0; round < 3; round++) {
    const [status, ms] = await time(file)
    assert.equal(status, 200)
    assert.ok(ms < RECORD_PATIENCE_MS, `it waited ${ms} ms for the record`)
    assert.equal((await time(`${a!.url}/healthz`))[0], 200)
    assert.equal((await time(`${a!.url}/metrics`))[0], 200)
  }
  await waitFor(
    'the agent to say that it is not ready',
    async () => (await time(`${a!.url}/readyz`))[0] === 503,
    60_000,
  )
  assert.equal(waiting.process.exitCode, null)
  await postgres.start()
  const isReady = (url: string) =>
    time(url).then(
      ([status]) => status === 200,
      () => false,
    )
  await waitFor(
    'both agents to be ready',
    async () => (await isReady(`${a!.url}/readyz`)) && isReady(`${b!.url}/readyz`),
    60_000,
  )
})

test('warm prepares are hits in the metrics of an agent', async (context) => {
  const world = await makeWorld(context, { agent: { listen: '127.0.0.1:0' } })
  await writeTree(join(world.directory, 'scans'), { 'a.bin': 'one' })
  const datasets = { scans: { source: `${pathToFileURL(join(world.directory, 'scans'))}/` } }
  await world.configure({ agent: { listen: '127.0.0.1:0' }, datasets })
  const agent = world.start(['agent', '--json'])
  let text = ''
  agent.process.stdout!.on('data', (chunk) => {
    text += String(chunk)
  })
  const url = await waitFor('the agent', () => /"url":\s*"([^"]+)"/.exec(text)?.[1])
  for (let round = 0; round < 3; round++)
    assert.equal((await world.dsc('prepare', 'scans', '--task', 't')).code, 0)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  assert.match(metrics, /dsc_hits_total\{dataset="scans"\} [23]/)
})
