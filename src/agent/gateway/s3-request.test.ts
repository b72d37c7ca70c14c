import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeToken, parseS3Request, S3Error, toOriginForm } from './s3-request.js'

const parse = (method: string, url: string, hostBucket?: string) =>
  parseS3Request({ method, url, hostBucket })
const BUCKETS = { kind: 'ListBuckets', prefix: '', after: '', maxBuckets: 10_000 }
const OBJECT = { kind: 'GetObject', versionId: undefined, partNumber: undefined, headers: undefined }

for (const [method, url, hostBucket, asked] of [
  ['GET', '/', undefined, BUCKETS],
  ['GET', '/?x-id=ListBuckets', undefined, BUCKETS],
  [
    'GET',
    `/?prefix=ml&max-buckets=2&continuation-token=${encodeToken('ml-a')}&X-Amz-Signature=0`,
    undefined,
    { kind: 'ListBuckets', prefix: 'ml', after: 'ml-a', maxBuckets: 2 },
  ],
  ['HEAD', '/ml-data', undefined, { kind: 'HeadBucket', bucket: 'ml-data' }],
  ['GET', '/ml-data/?location', undefined, { kind: 'GetBucketLocation', bucket: 'ml-data' }],
  ['GET', '/ml-data/a%20b/%C3%BC+%2B', undefined, { ...OBJECT, bucket: 'ml-data', key: 'a b/ü++' }],
  [
    'HEAD',
    '/ml-data/a?versionId=3',
    undefined,
    { ...OBJECT, kind: 'HeadObject', bucket: 'ml-data', key: 'a', versionId: '3' },
  ],
  [
    'GET',
    '/ml-data/a?response-content-type=image%2Fpng&response-expires=0&x-id=GetObject',
    undefined,
    { ...OBJECT, bucket: 'ml-data', key: 'a', headers: { 'content-type': 'image/png', expires: '0' } },
  ],
  ['GET', '/a//b', 'ml-data', { ...OBJECT, bucket: 'ml-data', key: 'a//b' }],
  ['GET', '/ready/one.txt', 'other', { ...OBJECT, bucket: 'other', key: 'ready/one.txt' }],
] as const)
  test(`${method} ${url} is ${asked.kind}${hostBucket === undefined ? '' : ` of ${hostBucket}`}`, () => {
    assert.deepEqual(parse(method, url, hostBucket), asked)
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
  // Newer than this table: an unknown parameter means another operation.
  ['GET', '/ml-data?abac', 'NotImplemented'],
  ['GET', '/ml-data?session', 'NotImplemented'],
  ['GET', '/ml-data?metadataTable', 'NotImplemented'],
  ['GET', '/ml-data?list-type=2&versions', 'NotImplemented'],
  ['GET', '/ml-data/a?annotation', 'NotImplemented'],
  ['GET', '/ml-data/a?uploadId=1', 'NotImplemented'],
  ['GET', '/ml-data/a?location', 'NotImplemented'],
  ['GET', '/?acl', 'NotImplemented'],
  ['GET', '/?max-buckets=0', 'InvalidArgument'],
  ['GET', '/ml-data/a?AWSAccessKeyId=k&Signature=s&Expires=1', 'InvalidRequest'],
  ['GET', '/ml-data/a?response-content-type=a%0d%0ab', 'InvalidArgument'],
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
