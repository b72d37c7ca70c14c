import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { listenLocally } from '../../testing/listen-locally.js'
import { TOY_SGD, TOY_SLOTS, TOY_VALUES } from '../../testing/toy-model.js'
import { CentralNode } from './central-node.js'
import { openParameterClient } from './parameter-client.js'

test('a server waits for its ranks for as long as it is told, if that is months', async (t) => {
  const node = new CentralNode({
    mode: { kind: 'sync' },
    workers: 2,
    optimizer: TOY_SGD,
    isMean: true,
    lost: { kind: 'abort' },
    lostAfterMs: 2 ** 31,
    checkpointEvery: 1,
  })
  t.after(() => node.close())
  await node.begin(TOY_SLOTS, TOY_VALUES)
  await node.push({ rank: 0, epoch: 0, step: 0, baseVersion: 0 }, TOY_VALUES)
  await sleep(50)
  assert.equal(node.abortReason, undefined)
})

test('the patience with a server that restarts begins when it is gone, however long it took to answer before', async (t) => {
  let calls = 0
  const server = createServer((request, response) => {
    request.resume()
    if (calls++ > 0) response.end('{}')
    else setTimeout(() => request.socket.destroy(), 2500)
  })
  const port = await listenLocally(server, t)
  const url = `http://127.0.0.1:${port}`
  const patienceMs = 2000
  const client = await openParameterClient({ url, rank: 0, slots: TOY_SLOTS, values: TOY_VALUES, patienceMs })
  client.close()
  assert.equal(calls, 2)
})

test('a server that is always stopping is given up', async (t) => {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(410)
    response.end(JSON.stringify({ error: { reason: 'aborted', message: 'the server is stopping' } }))
  })
  const port = await listenLocally(server, t)
  const url = `http://127.0.0.1:${port}`
  const opening = openParameterClient({ url, rank: 0, slots: TOY_SLOTS, values: TOY_VALUES, patienceMs: 200 })
  await assert.rejects(opening, { code: 'PARAMS_UNREACHABLE', message: /the server is stopping/ })
})

for (const url of ['gpu-1:7272', '127.0.0.1:7272', 'https://gpu-1:7272'])
  test(`${url} is no address of a central node, and that is said at once`, async () => {
    await assert.rejects(openParameterClient({ url, rank: 0, slots: TOY_SLOTS, values: TOY_VALUES }), {
      code: 'USAGE',
      message: /expected http:\/\/host:port/,
    })
  })
