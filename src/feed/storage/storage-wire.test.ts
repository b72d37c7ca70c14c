import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatGetBatch, parseGetBatch, readStorageFrames, type StorageHead } from './storage-wire.js'

function read(bytes: Buffer): readonly [StorageHead, Buffer][] {
  const found: [StorageHead, Buffer][] = []
  const onControl = (head: StorageHead, payload: Buffer) => found.push([head, payload])
  readStorageFrames('peer', { onItems: () => {}, onControl }).push(bytes)
  return found
}

test('the bytes of a request are pinned: a change needs another version of STORAGE_WIRE', () => {
  const frame = formatGetBatch(7, Uint32Array.of(3, 70_000), 4096)
  assert.equal(
    frame.toString('hex'),
    '445343422c00000008000000000003002dafe1977b2274797065223a362c2272657175657374223a372c226d61784279746573223a343039367d2020202020200300000070110100',
  )
  const [[head, payload] = assert.fail()] = read(frame)
  assert.deepEqual(head, { type: 6, request: 7, maxBytes: 4096 })
  assert.deepEqual(parseGetBatch(head, payload), { samples: Uint32Array.of(3, 70_000), maxBytes: 4096 })
})

test('what is no frame of a storage node is refused by the name of its sender', () => {
  assert.throws(() => read(Buffer.from('GET /metrics HTTP/1.0\r\n\r\n')), {
    code: 'FEED_PROTOCOL',
    message: 'peer does not speak DSCB',
  })
})
