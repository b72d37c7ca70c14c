import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { listenLocally } from '../../testing/listen-locally.js'
import { answerHalfOpen, letWait } from './waiting-clients.js'

/** Also the time that a busy machine may take between a connection and its request. */
const IDLE_MS = 1000

/** A server that answers when told to, and a client that has asked. */
async function ask(t: TestContext, idleMs = IDLE_MS) {
  const server = createServer()
  answerHalfOpen(server)
  server.timeout = idleMs
  const port = await listenLocally(server)
  const client = connect(port, '127.0.0.1')
  t.after(() => {
    client.destroy()
    server.close()
  })
  let text = ''
  client.on('data', (chunk: Buffer) => {
    text += chunk
  })
  client.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  letWait(response, idleMs)
  const ended = once(client, 'close').then(() => text)
  return { client, response, ended }
}

test('a client waits for its answer for as long as that takes', async (t) => {
  const { response, ended } = await ask(t)
  await sleep(2 * IDLE_MS)
  response.end('late')
  assert.match(await ended, /^HTTP\/1\.1 200 .*late$/s)
})

test('a client that ended its side is answered', async (t) => {
  const { client, response, ended } = await ask(t, 30_000)
  client.end()
  await sleep(50)
  response.end('late')
  assert.match(await ended, /^HTTP\/1\.1 200 .*late$/s)
})

test('a client that ended its side, and may have gone, is let go after a while', async (t) => {
  const { client, response, ended } = await ask(t)
  client.end()
  await once(response, 'close')
  assert.equal(await ended, '')
})

test('a client that takes nothing of its answer is let go', async (t) => {
  const { client, response } = await ask(t)
  client.pause()
  response.writeHead(200)
  response.write(Buffer.alloc(64 * 1024 * 1024))
  await once(response, 'close')
})
