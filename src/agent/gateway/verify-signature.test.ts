import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { S3Error } from './s3-request.js'
import { isSigned, type SignedRequest, verifySignature } from './verify-signature.js'

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
const findSecrets = (accessKeyId: string) => (accessKeyId === 'DSCEXAMPLE' ? ['old', SECRET] : [])

/** The request that the SDK makes for a command, caught before it leaves. */
async function signBySdk(
  command: GetObjectCommand | ListObjectsV2Command,
  secretAccessKey = SECRET,
  accessKeyId = 'DSCEXAMPLE',
): Promise<SignedRequest> {
  let caught: SignedRequest | undefined
  const client = new S3Client({
    endpoint: 'http://127.0.0.1:9300',
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
    requestHandler: {
      handle: async (request: {
        method: string
        path: string
        query?: object
        headers: Record<string, string>
      }) => {
        const pair = ([name, value]: [string, unknown]) => `${encode(name)}=${encode(String(value))}`
        const query = Object.entries(request.query ?? {})
          .map(pair)
          .join('&')
        caught = {
          method: request.method,
          url: `${request.path}${query && `?${query}`}`,
          headers: lower(request.headers),
        }
        throw new Error('caught')
      },
    },
  })
  await client.send(command as GetObjectCommand).catch(() => {})
  assert.ok(caught)
  return caught
}

const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
const lower = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

for (const Key of ['plain.txt', 'a b/c+d&e=f.jpg', "ümlaut/日本/'quotes'(1)*!.bin", 'x//y'])
  test(`accepts what the SDK signs for ${JSON.stringify(Key)}`, async () => {
    const request = await signBySdk(new GetObjectCommand({ Bucket: 'ml-data', Key, Range: 'bytes=0-9' }))
    assert.equal(isSigned(request), true)
    assert.equal(verifySignature(request, findSecrets, Date.now()), 'DSCEXAMPLE')
  })

test('refuses a parameter that was put before the signed one of the same name', async () => {
  const request = await signBySdk(new ListObjectsV2Command({ Bucket: 'ml-data', Prefix: 'mine/' }))
  const url = request.url.replace('?', '?prefix=theirs%2F&')
  assert.throws(() => verifySignature({ ...request, url }, findSecrets, Date.now()), {
    code: 'SignatureDoesNotMatch',
  })
})

test('accepts a signed listing, whatever is in its query', async () => {
  const request = await signBySdk(
    new ListObjectsV2Command({ Bucket: 'ml-data', Prefix: 'a b/ü+', Delimiter: '/', StartAfter: '~(x)' }),
  )
  assert.equal(verifySignature(request, findSecrets, Date.now()), 'DSCEXAMPLE')
})

async function refusal(request: SignedRequest, nowMs = Date.now()): Promise<string> {
  try {
    verifySignature(request, findSecrets, nowMs)
  } catch (error) {
    assert.ok(error instanceof S3Error)
    return error.code
  }
  return 'accepted'
}

test('refuses another secret, an unknown key, another path, another header and a late request', async () => {
  const command = new GetObjectCommand({ Bucket: 'ml-data', Key: 'a', Range: 'bytes=0-9' })
  const good = await signBySdk(command)
  assert.equal(await refusal(good), 'accepted')
  assert.equal(await refusal(await signBySdk(command, 'another')), 'SignatureDoesNotMatch')
  assert.equal(await refusal(await signBySdk(command, SECRET, 'NOBODY')), 'InvalidAccessKeyId')
  assert.equal(await refusal({ ...good, url: good.url.replace('/a', '/b') }), 'SignatureDoesNotMatch')
  const headers = { ...good.headers, range: 'bytes=0-99' }
  assert.equal(await refusal({ ...good, headers }), 'SignatureDoesNotMatch')
  assert.equal(await refusal(good, Date.now() + 16 * 60_000), 'RequestTimeTooSkewed')
  assert.equal(await refusal({ ...good, headers: { authorization: 'Bearer x' } }), 'InvalidRequest')
})

/** From "Authenticating Requests: Using Query Parameters", S3 API reference. */
test('accepts the presigned URL of the AWS documentation in its time, and not a second after it', async () => {
  const request = {
    method: 'GET',
    url: '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=DSCEXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
    headers: { host: 'examplebucket.s3.amazonaws.com' },
  }
  const url = request.url.replace('DSCEXAMPLE', 'AKIAIOSFODNN7EXAMPLE')
  const documented = (nowMs: number) => verifySignature({ ...request, url }, () => [SECRET], nowMs)
  const atMs = Date.UTC(2013, 4, 24)
  assert.equal(documented(atMs + 1000), 'AKIAIOSFODNN7EXAMPLE')
  assert.throws(() => documented(atMs + 86_401_000), { code: 'AccessDenied' })
  assert.throws(() => verifySignature({ ...request, url: `${url}&x=1` }, () => [SECRET], atMs), {
    code: 'SignatureDoesNotMatch',
  })
})

for (const scope of [
  '/'.repeat(30_000),
  '20260101/us-east-1/s3',
  '20260101/us-east-1/s3/aws4_request/more',
  '20251231/us-east-1/s3/aws4_request',
  '20260101/us-east-1/s3/other',
])
  test(`a scope of another form than S3's is refused before a key is made: ${scope.slice(0, 50)}`, () => {
    const secrets: string[] = []
    const headers = {
      'x-amz-date': '20260101T000000Z',
      authorization: `AWS4-HMAC-SHA256 Credential=DSCEXAMPLE/${scope}, SignedHeaders=host, Signature=${'0'.repeat(64)}`,
    }
    const ask = (accessKeyId: string) => {
      secrets.push(accessKeyId)
      return [SECRET]
    }
    assert.throws(
      () => verifySignature({ method: 'GET', url: '/a/b', headers }, ask, Date.UTC(2026, 0, 1)),
      (error) => error instanceof S3Error && error.code === 'AuthorizationHeaderMalformed',
    )
    assert.deepEqual(secrets, [])
  })

test('a signature of version 2 is told how to become one of version 4', () => {
  const headers = { authorization: 'AWS key:signature', date: 'Thu, 01 Jan 2026 00:00:00 GMT' }
  assert.throws(
    () => verifySignature({ method: 'GET', url: '/a/b', headers }, findSecrets, 0),
    /signature_version='s3v4'/,
  )
})
