import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'
import type { HeldSource } from '../../testing/held-source.js'
import { waitFor } from '../../testing/world.js'

test('a client that ends its side once it has asked is answered when the object comes', async (t) => {
  const origin = originOf({ a: 'alpha' })
  const letGo = origin.source.hold('a')
  const { port } = await (await openGatewayNode(t, [origin])).open([DATA])
  const client = connect(port, '127.0.0.1')
  client.end('GET /bucket/data/a HTTP/1.0\r\n\r\n')
  await waitFor('the object to be asked for', () => origin.source.fetches('a') > 0)
  await sleep(200)
  letGo()
  let text = ''
  for await (const chunk of client) text += chunk
  assert.match(text, /^HTTP\/1\.1 200 .*\r\n\r\nalpha$/s)
})

test('while a client takes nothing of what is passed through, the source waits', async (t) => {
  const [SIZE_BYTES, PIECE_BYTES] = [96 * 1024 * 1024, 256 * 1024]
  const { source: held } = originOf({ big: Buffer.alloc(SIZE_BYTES) })
  let givenBytes = 0
  const source: HeldSource = {
    ...held,
    openFetcher: async (options) => ({
      ...(await held.openFetcher(options)),
      async fetch({ length, sink, signal }) {
        for (; givenBytes < length; givenBytes += PIECE_BYTES) {
          signal?.throwIfAborted()
          await sleep(sink(Buffer.alloc(PIECE_BYTES)))
        }
      },
    }),
  }
  const node = await openGatewayNode(t, [{ dataset: DATA, source }], { hasRoom: false })
  const { port } = await node.open([DATA])
  const client = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  client.pause().write('GET /bucket/data/big HTTP/1.1\r\nhost: x\r\n\r\n')
  await waitFor('the first bytes', () => givenBytes > 0)
  await sleep(2000)
  assert.ok(givenBytes < 20 * 1024 * 1024, `${givenBytes} bytes wait for it`)
})
