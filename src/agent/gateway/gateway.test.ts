import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'
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
