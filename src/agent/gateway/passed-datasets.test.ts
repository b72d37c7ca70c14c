import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'
import { waitFor } from '../../testing/world.js'

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

test('a source that takes longer to be listed than it is passed through is not listed for each request', async (t) => {
  const clock = { ms: 0 }
  t.mock.method(performance, 'now', () => clock.ms)
  const origin = originOf({ a: 'alpha' })
  const { source } = origin
  const letFirstGo = source.holdListing()
  const { read } = await (await openGatewayNode(t, [origin], { hasRoom: false })).open([DATA])
  const first = read('/data/a')
  await waitFor('the source to be listed', () => source.listings() === 1)
  const letSecondGo = source.holdListing()
  letFirstGo()
  await waitFor('the source to be listed for passing through', () => source.listings() === 2)
  clock.ms += 61_000
  letSecondGo()
  assert.equal((await first).text, 'alpha')
  assert.equal((await read('/data/a')).text, 'alpha')
  assert.equal(source.listings(), 2)
})
