import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatGatheredHead,
  formatObjectQuery,
  formatObjectsUrl,
  parseObjectsQuery,
  readGathered,
} from './gathered-wire.js'

// The format that agents of other versions send and read: changing it needs a new WIRE_VERSION.
const OBJECTS = [
  { key: 'a/ü "1".bin', sizeBytes: 3, etag: 'e&1', versionId: null },
  { key: 'b', sizeBytes: 0, etag: null, versionId: 'v=2' },
]
const URL_TEXT =
  '/v1/datasets/my%20flowers/objects?source=s3%3A%2F%2Fb%2Ff%2F' +
  '&object=%5B%22a%2F%C3%BC%20%5C%221%5C%22.bin%22%2C3%2C%22e%261%22%2Cnull%5D' +
  '&object=%5B%22b%22%2C0%2Cnull%2C%22v%3D2%22%5D'
const FACTS = { checksums: [], uploadPartBytes: null, isEtagMd5: true } as const
const ANSWER =
  'RFNDR4wAAAADAAAAAAACAE/IWh57InN0YXR1cyI6MjAwLCJmYWN0cyI6eyJjaGVja3N1bXMiOltdLCJ1cGxvYWRQYXJ0Qnl0ZXMiOm51bGwsImlzRXRh' +
  'Z01kNSI6dHJ1ZX0sImRpZ2VzdCI6IjArMyBtZDU6a0FGUW1EelNUN0RXbGo5OUtPRi9jZz09IiwiaXNQcm92ZW4iOnRydWV9IGFiY0RTQ0cUAAAA' +
  'AAAAAAAAAgCEO3FNeyJzdGF0dXMiOjQwNH0gICAgICA='

test('a question names each object by its content', () => {
  assert.equal(formatObjectsUrl('my flowers', 's3://b/f/', OBJECTS.map(formatObjectQuery)), URL_TEXT)
  const query = new URLSearchParams(URL_TEXT.split('?')[1])
  const common = { dataset: 'my flowers', source: 's3://b/f/' }
  assert.deepEqual(
    parseObjectsQuery('my flowers', query),
    OBJECTS.map((object) => ({ ...common, ...object })),
  )
})

test('a question with a malformed object is refused', () => {
  for (const object of ['', '{}', '["a",1,null]', '["a",-1,null,null]', '[1,1,null,null]', '["a",1,2,null]'])
    assert.equal(parseObjectsQuery('d', new URLSearchParams({ source: 's', object })), undefined, object)
  assert.equal(parseObjectsQuery('d', new URLSearchParams({ source: 's' })), undefined)
  assert.equal(parseObjectsQuery('d', new URLSearchParams({ object: '["a",1,null,null]' })), undefined)
})

function parse(pieces: readonly Buffer[]): unknown[] {
  const heard: unknown[] = []
  const objects = readGathered((head, lengthBytes) => {
    let bytes = ''
    return {
      take: (piece) => {
        bytes += Buffer.from(piece).toString()
      },
      end: () => heard.push([head, lengthBytes, bytes]),
    }
  })
  for (const piece of pieces) objects.push(piece)
  return heard
}

test('an answer has these bytes, and is read in whatever pieces it comes', () => {
  const digest = '0+3 md5:kAFQmDzST7DWlj99KOF/cg=='
  const heads = [{ status: 200, facts: FACTS, digest, isProven: true }, { status: 404 }] as const
  const bytes = Buffer.concat([
    formatGatheredHead(heads[0], 3),
    Buffer.from('abc'),
    formatGatheredHead(heads[1], 0),
  ])
  assert.equal(bytes.toString('base64'), ANSWER)
  const expected = [
    [heads[0], 3, 'abc'],
    [heads[1], 0, ''],
  ]
  for (let at = 0; at <= bytes.length; at += 1)
    assert.deepEqual(parse([bytes.subarray(0, at), bytes.subarray(at)]), expected)
})

test('what is no answer is refused', () => {
  assert.throws(() => parse([Buffer.from('<html>nothing here</html>')]), /does not speak DSCG/)
})
