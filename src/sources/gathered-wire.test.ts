import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatGatheredHead,
  formatObjectQuery,
  formatObjectsUrl,
  GatheredParser,
  parseObjectsQuery,
} from './gathered-wire.js'

// What agents of other versions send and read: another form needs another WIRE_VERSION.
const OBJECTS = [
  { key: 'a/ü "1".bin', sizeBytes: 3, etag: 'e&1', versionId: null },
  { key: 'b', sizeBytes: 0, etag: null, versionId: 'v=2' },
]
const URL_TEXT =
  '/v1/datasets/my%20flowers/objects?source=s3%3A%2F%2Fb%2Ff%2F' +
  '&object=%5B%22a%2F%C3%BC%20%5C%221%5C%22.bin%22%2C3%2C%22e%261%22%2Cnull%5D' +
  '&object=%5B%22b%22%2C0%2Cnull%2C%22v%3D2%22%5D'
const FACTS = { checksums: [], uploadPartBytes: null, isEtagMd5: true }
const ANSWER =
  '{"status":200,"length":3,"facts":{"checksums":[],"uploadPartBytes":null,"isEtagMd5":true},' +
  '"digest":"0+3 md5:kAFQmDzST7DWlj99KOF/cg==","isProven":true}\nabc{"status":404,"length":0}\n'

test('a question names each object by its content', () => {
  assert.equal(formatObjectsUrl('my flowers', 's3://b/f/', OBJECTS.map(formatObjectQuery)), URL_TEXT)
  const query = new URLSearchParams(URL_TEXT.split('?')[1])
  const common = { dataset: 'my flowers', source: 's3://b/f/' }
  assert.deepEqual(
    parseObjectsQuery('my flowers', query),
    OBJECTS.map((object) => ({ ...common, ...object })),
  )
})

test('a question with an object that is none is not understood', () => {
  for (const object of ['', '{}', '["a",1,null]', '["a",-1,null,null]', '[1,1,null,null]', '["a",1,2,null]'])
    assert.equal(parseObjectsQuery('d', new URLSearchParams({ source: 's', object })), undefined, object)
  assert.equal(parseObjectsQuery('d', new URLSearchParams({ source: 's' })), undefined)
  assert.equal(parseObjectsQuery('d', new URLSearchParams({ object: '["a",1,null,null]' })), undefined)
})

function parse(pieces: readonly Buffer[]): unknown[] {
  const heard: unknown[] = []
  let bytes = ''
  const parser = new GatheredParser({
    onHead: (head) => heard.push(head),
    onData: (chunk) => {
      bytes += Buffer.from(chunk).toString()
    },
    onEnd: () => heard.push(bytes),
  })
  for (const piece of pieces) parser.take(piece)
  return heard
}

test('an answer is read in whatever pieces it comes', () => {
  const digest = '0+3 md5:kAFQmDzST7DWlj99KOF/cg=='
  const heads = [
    { status: 200, length: 3, facts: FACTS, digest, isProven: true },
    { status: 404, length: 0 },
  ] as const
  assert.equal(`${formatGatheredHead(heads[0])}abc${formatGatheredHead(heads[1])}`, ANSWER)
  const bytes = Buffer.from(ANSWER)
  for (let at = 0; at <= bytes.length; at += 1)
    assert.deepEqual(parse([bytes.subarray(0, at), bytes.subarray(at)]), [heads[0], 'abc', heads[1], 'abc'])
  assert.deepEqual(parse([...bytes].map((byte) => Buffer.from([byte]))), [heads[0], 'abc', heads[1], 'abc'])
})

test('what is no answer is refused', () => {
  for (const text of [
    '<html>\n',
    '{"status":200}\n',
    '{"status":200,"length":-1}\n',
    'null\n',
    ' '.repeat(70_000),
  ])
    assert.throws(() => parse([Buffer.from(text)]), /head of an object/, text.slice(0, 40))
})
