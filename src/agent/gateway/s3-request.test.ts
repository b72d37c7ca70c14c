import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeToken, parseS3Request, S3Error, toOriginForm } from './s3-request.js'

const parse = (method: string, url: string, host = '127.0.0.1:9300') =>
  parseS3Request({ method, url, host, buckets: ['ml-data', 'ml'] })

for (const [method, url, host, asked] of [
  ['GET', '/', undefined, { kind: 'ListBuckets' }],
  ['GET', '/?x-id=ListBuckets', undefined, { kind: 'ListBuckets' }],
  ['HEAD', '/ml-data', undefined, { kind: 'HeadBucket', bucket: 'ml-data' }],
  ['GET', '/ml-data/?location', undefined, { kind: 'GetBucketLocation', bucket: 'ml-data' }],
  [
    'GET',
    '/ml-data/a%20b/%C3%BC+%2B',
    undefined,
    { kind: 'GetObject', bucket: 'ml-data', key: 'a b/ü++', versionId: undefined, partNumber: undefined },
  ],
  [
    'HEAD',
    '/ml-data/a?versionId=3',
    undefined,
    { kind: 'HeadObject', bucket: 'ml-data', key: 'a', versionId: '3', partNumber: undefined },
  ],
  [
    'GET',
    '/a//b',
    'ml-data.localhost:9300',
    { kind: 'GetObject', bucket: 'ml-data', key: 'a//b', versionId: undefined, partNumber: undefined },
  ],
  [
    'GET',
    '/a/b',
    'other.localhost',
    { kind: 'GetObject', bucket: 'a', key: 'b', versionId: undefined, partNumber: undefined },
  ],
] as const)
  test(`${method} ${url} at ${host ?? 'an address'} is ${asked.kind}`, () => {
    assert.deepEqual(parse(method, url, host), asked)
  })

test('a target may be a whole URL, as clients send it to proxies', () => {
  for (const [target, path] of [
    ['http://127.0.0.1:9300/ml/a%20b?x=http://y/z', '/ml/a%20b?x=http://y/z'],
    ['HTTP://ml.localhost', '/'],
    ['http://h?list-type=2', '/?list-type=2'],
    ['/ml/http://a/b', '/ml/http://a/b'],
  ] as const)
    assert.equal(toOriginForm(target), path)
})

test('an address has no bucket in front, even where a bucket is called as it begins', () => {
  const asked = { method: 'GET', url: '/127/a', host: '127.0.0.1:9300', buckets: ['127'] }
  assert.partialDeepStrictEqual(parseS3Request(asked), { bucket: '127', key: 'a' })
})

test('a listing goes on from its token, or from start-after, or from a marker', () => {
  const after = (url: string) => (parse('GET', url) as { after: string }).after
  assert.equal(after(`/ml?list-type=2&continuation-token=${encodeToken('ü/ä')}&start-after=a`), 'ü/ä')
  assert.equal(after('/ml?list-type=2&start-after=a'), 'a')
  assert.equal(after('/ml?marker=m&start-after=a'), 'm')
})

for (const [method, url, code] of [
  ['PUT', '/ml-data/a', 'AccessDenied'],
  ['DELETE', '/ml-data/a', 'AccessDenied'],
  ['POST', '/ml-data?delete', 'AccessDenied'],
  ['GET', '/ml-data?acl', 'NotImplemented'],
  ['GET', '/ml-data/a?partNumber=0', 'InvalidArgument'],
  ['GET', '/ml-data/a?partNumber=10001', 'InvalidArgument'],
  ['GET', '//ml-data/a', 'InvalidBucketName'],
  ['GET', '/ml-data/%zz', 'InvalidURI'],
  ['GET', '/ml-data?max-keys=-1', 'InvalidArgument'],
  ['GET', '/ml-data?list-type=2&continuation-token=%2F', 'InvalidArgument'],
  ['GET', '/ml-data?encoding-type=base64', 'InvalidArgument'],
] as const)
  test(`${method} ${url} is refused with ${code}`, () => {
    assert.throws(
      () => parse(method, url),
      (error) => error instanceof S3Error && error.code === code,
    )
  })
