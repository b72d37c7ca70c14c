import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { makeCluster } from '../testing/cluster.js'
import { STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { startCountingStore } from '../testing/counting-store.js'
import { s3Dataset, waitFor } from '../testing/world.js'

/** So long a question of the record is asked before it is given up: who answers sooner has not waited for one. */
const RECORD_PATIENCE_MS = 60_000

for (const when of ['once it is ready', 'as soon as it was read while it came'])
  test(`while the record is away the gateway serves what is here, ${when}, and the rest is ServiceUnavailable`, async (context) => {
    const objects = new Map(
      ['here/a', 'here/b', 'away/c'].map((key) => [key, Buffer.from(`bytes of ${key}`)] as const),
    )
    const store = await startCountingStore(objects)
    context.after(() => store.close())
    const names = ['here', 'away']
    const datasets = Object.fromEntries(
      names.map((name) => [name, s3Dataset('bucket', `${name}/`, store.endpoint)]),
    )
    const environment = STORE_ENVIRONMENT
    const { nodes, postgres } = await makeCluster(context, { nodes: ['node-a'], datasets, environment })
    const [node] = nodes
    if (when === 'once it is ready') assert.equal((await node!.dsc('prepare', 'here', '--task', 't')).code, 0)
    const agent = node!.start('agent', '--gateway', '127.0.0.1:0', '--json')
    const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
    const { gateway } = JSON.parse(String(line)) as { gateway: string }
    const read = async (path: string) => {
      const beganMs = performance.now()
      const [response] = (await once(get(`${gateway}${path}`, { agent: false }), 'response')) as [
        IncomingMessage,
      ]
      const body = (await buffer(response)).toString()
      return { status: response.statusCode, headers: response.headers, body, ms: performance.now() - beganMs }
    }
    assert.equal((await read('/bucket/here/a')).body, 'bytes of here/a')
    const allReady = () =>
      waitFor('the copies to be ready', async () => {
        const { copies } = JSON.parse((await node!.dsc('status', '--json')).stdout)
        return copies.length > 0 && copies.every((copy: { state: string }) => copy.state === 'ready')
      })
    await allReady()
    await postgres.stop('immediate')
    for (let round = 0; round < 4; round++) {
      const here = await read('/bucket/here/b')
      assert.deepEqual([here.status, here.body], [200, 'bytes of here/b'])
      assert.ok(here.ms < RECORD_PATIENCE_MS, `it waited ${here.ms} ms for the record`)
      const away = await read('/bucket/away/c')
      assert.equal(away.status, 503, away.body)
      assert.ok(Number(away.headers['retry-after']) > 0)
      assert.ok(away.ms < RECORD_PATIENCE_MS, `it waited ${away.ms} ms for the record`)
    }
    await postgres.start()
    const answered = await waitFor(
      'the record to be believed again',
      async () => {
        const { status, body } = await read('/bucket/away/c')
        return status === 200 && body
      },
      60_000,
    )
    assert.equal(answered, 'bytes of away/c')
    await allReady()
  })
