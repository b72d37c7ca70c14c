import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { WebAssembly } from '../wasm/runtime.js'
import { type SmallMd5, startSmallMd5 } from './small-md5.js'

const MAX_BYTES = 256 * 1024
const data = Buffer.from(Array.from({ length: MAX_BYTES }, (_, index) => (index * index) % 251))

function start(lengthBytes: number): SmallMd5 {
  const digest = startSmallMd5(lengthBytes)
  assert.ok(digest, 'a slot is free')
  return digest
}

async function digestTogether(objects: readonly Uint8Array[]): Promise<string[]> {
  const digests = objects.map((bytes) => {
    const digest = start(bytes.length)
    digest.update(bytes.subarray(0, bytes.length >> 1))
    digest.update(bytes.subarray(bytes.length >> 1))
    return digest.finish()
  })
  return (await Promise.all(digests)).map((digest) => digest.toString('hex'))
}

const expectedOf = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex')

// Around the ends of blocks, where padding needs one more, and the largest of all.
for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 100_000, MAX_BYTES])
  for (const count of [1, 2, 4, 5])
    test(`${count} objects of ${length} bytes have the MD5 that Node finds`, async () => {
      const objects = Array.from({ length: count }, (_, index) =>
        data.subarray(0, length).map((byte, at) => (at === 0 ? index : byte)),
      )
      assert.deepEqual(await digestTogether(objects), objects.map(expectedOf))
    })

test('objects of all lengths share lanes', async () => {
  const lengths = fc.array(fc.oneof(fc.nat(300), fc.nat(9000)), { minLength: 1, maxLength: 32 })
  await fc.assert(
    fc.asyncProperty(lengths, async (found) => {
      const objects = found.map((length, index) => data.subarray(index, index + length))
      assert.deepEqual(await digestTogether(objects), objects.map(expectedOf))
    }),
  )
})

test('slots that are dropped or finished are free for others, which never see their bytes', async () => {
  for (let round = 0; round < 3; round++) {
    const taken = Array.from({ length: 32 }, () => start(1000))
    assert.equal(startSmallMd5(1000), undefined, 'more objects than slots')
    for (const digest of taken) digest.update(data.subarray(0, 1000))
    for (const digest of taken.slice(1)) digest.drop()
    assert.equal((await taken[0]!.finish()).toString('hex'), expectedOf(data.subarray(0, 1000)))
  }
  assert.deepEqual(await digestTogether([data.subarray(0, 3)]), [expectedOf(data.subarray(0, 3))])
})

test('bytes beyond the announced length are refused, as they would be in the memory of another object', () => {
  const digest = start(10)
  digest.update(data.subarray(0, 7))
  assert.throws(() => digest.update(data.subarray(0, 4)), /more than 10 bytes/)
  digest.drop()
})

test('an object that ends early has the MD5 of what came', async () => {
  const digest = start(1000)
  digest.update(data.subarray(0, 10))
  assert.equal((await digest.finish()).toString('hex'), expectedOf(data.subarray(0, 10)))
})

test('large objects are left to others', () => {
  assert.equal(startSmallMd5(MAX_BYTES + 1), undefined)
})

test('an engine without memory leaves all objects to others', async (context) => {
  context.mock.method(WebAssembly, 'Memory', function refuse() {
    throw new RangeError('WebAssembly.Memory(): could not allocate memory')
  })
  const url = new URL(`./small-md5.js?refused`, import.meta.url).href
  const { startSmallMd5: startRefused } = (await import(url)) as { startSmallMd5: typeof startSmallMd5 }
  assert.equal(startRefused(10), undefined)
  context.mock.restoreAll()
  assert.equal(startRefused(10), undefined, 'it does not ask again for each object')
})
