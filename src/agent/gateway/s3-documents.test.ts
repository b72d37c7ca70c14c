import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatBuckets, formatError, formatListing } from './s3-documents.js'
import { encodeToken, parseS3Request, S3Error } from './s3-request.js'

test('an error that names a key with control characters is a document that XML has', () => {
  const error = new S3Error('NoSuchKey', 'a\0b\u0001c\uFFFFd <ü>')
  assert.match(
    formatError(error, '/bucket/a%00b', '1'),
    /<Message>a\uFFFDb\uFFFDc\uFFFDd &lt;ü&gt;<\/Message>/,
  )
})

test('buckets are listed by prefix, a page at a time', () => {
  const names = (text: string) => [...text.matchAll(/<Name>([^<]*)</g)].map(([, name]) => name)
  const all = ['a', 'ml-1', 'ml-2', 'ml-3']
  const first = formatBuckets({ prefix: 'ml', after: '', maxBuckets: 2 }, all)
  assert.deepEqual(names(first), ['ml-1', 'ml-2'])
  const token = /<ContinuationToken>([^<]*)</.exec(first)?.[1]
  assert.equal(token, encodeToken('ml-2'))
  const second = formatBuckets({ prefix: 'ml', after: 'ml-2', maxBuckets: 2 }, all)
  assert.deepEqual(names(second), ['ml-3'])
  assert.doesNotMatch(second, /ContinuationToken/)
})

test('an object of a listing has an owner where one was asked for', () => {
  const object = { key: 'a', sizeBytes: 1, etag: null, modifiedAtMs: 0 }
  const page = { objects: [object], commonPrefixes: [], next: undefined } as unknown as Parameters<
    typeof formatListing
  >[1]
  const parsed = (url: string) =>
    parseS3Request({ method: 'GET', url }) as Parameters<typeof formatListing>[0]
  assert.match(formatListing(parsed('/b?list-type=2&fetch-owner=true'), page), /<Owner><ID>dsc</)
  assert.match(formatListing(parsed('/b'), page), /<Owner>/)
  assert.doesNotMatch(formatListing(parsed('/b?list-type=2'), page), /Owner/)
})
