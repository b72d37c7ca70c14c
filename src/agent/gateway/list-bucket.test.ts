import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Manifest } from '../../manifest/manifest.js'
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

test('a listing below a dataset that lies inside another stages that one alone', async (t) => {
  const outer = originOf({ a: '1', 'inner/b': '2' })
  const inner = originOf(
    { b: '3' },
    { name: 'inner', source: 's3://bucket/data/inner/', include: [], exclude: [] },
  )
  const { open, staged } = await openGatewayNode(t, [outer, inner])
  const { list } = await open([outer.dataset, inner.dataset])
  assert.deepEqual(await list('prefix=data/inner/'), ['data/inner/b'])
  assert.deepEqual(await staged(), ['inner'])
})

test('of datasets with one prefix each answers for the keys that it takes, the first for those that both take', async (t) => {
  const objects = { 'a.jpg': '1', 'b.txt': '2', 'c.bin': '3' }
  const jpg = originOf(objects, { ...DATA, name: 'jpg', include: ['*.jpg', 'b.*'] })
  const txt = originOf(objects, { ...DATA, name: 'txt', include: ['*.txt'] })
  const { read, list } = await (await openGatewayNode(t, [jpg, txt])).open([txt.dataset, jpg.dataset])
  assert.deepEqual(await list(''), ['data/a.jpg', 'data/b.txt'])
  assert.equal((await read('/data/a.jpg')).text, '1')
  assert.equal((await read('/data/b.txt')).text, '2')
  assert.equal((await read('/data/c.bin')).status, 404)
})

test('keys that a dataset inside answers for are passed over by one look-up', async (t) => {
  const inside = Array.from({ length: 5000 }, (_, i) => `inner/${String(i).padStart(4, '0')}`)
  const keys = ['a', ...inside, 'inner/\u{10FFFF}', 'z']
  const outer = originOf(Object.fromEntries(keys.map((key) => [key, ''])))
  const inner = originOf(
    { b: '' },
    { name: 'inner', source: 's3://bucket/data/inner/', include: [], exclude: [] },
  )
  const { open } = await openGatewayNode(t, [outer, inner], { hasRoom: false })
  const { list } = await open([outer.dataset, inner.dataset])
  let looked = 0
  const { entriesFrom } = Manifest.prototype
  t.mock.method(Manifest.prototype, 'entriesFrom', function* (this: Manifest, key: string) {
    for (const entry of entriesFrom.call(this, key)) {
      looked += 1
      yield entry
    }
  })
  assert.deepEqual(await list('delimiter=/&prefix=data/'), ['data/a', 'data/z', 'data/inner/'])
  assert.deepEqual(await list(''), ['data/a', 'data/inner/b', 'data/z'])
  assert.ok(looked < 100, `${looked} keys were looked at`)
})
