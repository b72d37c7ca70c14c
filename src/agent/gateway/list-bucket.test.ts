import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'

test('a listing by folders that begins inside of a dataset shows it while keys come behind', async (t) => {
  const origin = originOf({ a: '1', big: '2' })
  const { open, staged } = await openGatewayNode(t, [origin])
  const { list } = await open([DATA])
  assert.deepEqual(await list('delimiter=/'), ['data/'])
  assert.deepEqual(await list('delimiter=/&start-after=data/'), [])
  assert.deepEqual(await staged(), [], 'a dataset is not staged for being seen')
  assert.deepEqual(await list('delimiter=/&start-after=data/a'), ['data/'])
  assert.deepEqual(await list('delimiter=/&start-after=data/big'), [])
})
