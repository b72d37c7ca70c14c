import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { startCountingStore } from '../testing/counting-store.js'
import { startGateway } from '../testing/gateway-world.js'
import { makeWorld, s3Dataset, waitFor } from '../testing/world.js'

const MIB = 1024 * 1024
/** Comes in three parts of 16 MiB. */
const LARGE = randomBytes(40 * MIB)

/** A gateway of an object whose last part the origin holds back. */
async function makeGateway(t: TestContext, gateway: Readonly<Record<string, unknown>>) {
  const store = await startCountingStore(
    new Map([
      ['data/large', LARGE],
      ['data/small', Buffer.from('small')],
    ]),
  )
  t.after(() => store.close())
  const letGo = store.holdBack('data/large', 2)
  const world = await makeWorld(t, {
    agent: { listen: '127.0.0.1:0', gateway: { listen: '127.0.0.1:0', ...gateway } },
    datasets: { data: s3Dataset('bucket', 'data/', store.endpoint) },
  })
  const { read, metric } = await startGateway(world, { words: [] })
  const readRange = async (first: number, last: number) => {
    const { status, body } = await read('/bucket/data/large', { range: `bytes=${first}-${last}` })
    assert.equal(status, 206)
    assert.ok(body.equals(LARGE.subarray(first, last + 1)), `bytes ${first} to ${last}`)
  }
  const isReady = () => world.query(`SELECT 1 FROM copies WHERE state = 'ready'`).length > 0
  return { store, letGo, read, readRange, metric, isReady }
}

test('unproven: a range of an arriving object is answered as soon as its bytes are there', async (t) => {
  const { letGo, readRange, metric, isReady } = await makeGateway(t, { ranges: 'unproven' })
  await readRange(0, 99)
  await readRange(17 * MIB + 5, 18 * MIB)
  await readRange(16 * MIB - 1000, 16 * MIB + 1000)
  assert.equal(isReady(), false)
  const rest = readRange(39 * MIB, 40 * MIB - 1)
  letGo()
  await rest
  await waitFor('the copy to be ready', isReady)
  await readRange(0, 40 * MIB - 1)
  await waitFor(
    'answers to be counted',
    async () => (await metric('dsc_gateway_sent_bytes_total', 'arriving')) > 0,
  )
})

test('proven: a range of an arriving object waits for the digest that the store has of the whole', async (t) => {
  const { store, letGo, read, readRange, isReady } = await makeGateway(t, {})
  let isAnswered = false
  const first = readRange(0, 99).then(() => {
    isAnswered = true
  })
  await waitFor('all but the last part', () => store.sentBytes() >= 32 * MIB)
  assert.equal((await read('/bucket/data/small')).body.toString(), 'small')
  assert.deepEqual([isAnswered, isReady()], [false, false])
  letGo()
  await first
})
