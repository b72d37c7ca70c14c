import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'

test('a copy of what a dataset was declared as before is not read as what it is now', async (t) => {
  const before = originOf({ a: 'old' }, { ...DATA, source: 's3://bucket/old/' })
  const now = originOf({ a: 'new' })
  const { prepare, open } = await openGatewayNode(t, [before, now])
  await prepare(before.dataset)
  const { read } = await open([DATA])
  assert.equal((await read('/data/a')).text, 'new')
})
