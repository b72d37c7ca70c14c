import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { listenLocally } from '../../testing/listen-locally.js'
import { openConnections } from './connections.js'
import { readConnection } from './read-connection.js'
import { createServerClock } from './server-clock.js'

test('a server without TLS that goes away before it is asked again is one that went away', async (context) => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      server.close()
      socket.end('N') // PostgreSQL's answer when it has no TLS
    })
  })
  const port = await listenLocally(server)
  const plan = readConnection(`postgres://dsc@127.0.0.1:${port}/dsc`, {})
  const connections = openConnections(plan, 1, createServerClock())
  context.after(() => connections.close())
  await assert.rejects(connections.take(), { code: 'ECONNREFUSED' })
})
