import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'

test('an object that has gone since it was listed is missing, where bytes are passed through', async (t) => {
  const origin = originOf({ a: 'alpha', b: 'beta' })
  const { read } = await (await openGatewayNode(t, [origin], { hasRoom: false })).open([DATA])
  assert.equal((await read('/data/a')).text, 'alpha')
  origin.source.objects.delete('b')
  const { status, text } = await read('/data/b')
  assert.deepEqual([status, /<Code>(\w+)</.exec(text)?.[1]], [404, 'NoSuchKey'])
})

test('a key that is also the folder of others is passed through', async (t) => {
  const origin = originOf({ x: 'file', 'x/y': 'below' })
  const { read, list } = await (await openGatewayNode(t, [origin])).open([DATA])
  assert.deepEqual(await list(''), ['data/x', 'data/x/y'])
  assert.equal((await read('/data/x')).text, 'file')
  assert.equal((await read('/data/x/y')).text, 'below')
})
