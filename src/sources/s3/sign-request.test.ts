import assert from 'node:assert/strict'
import { createPublicKey, hash, verify } from 'node:crypto'
import { test } from 'node:test'
import { deriveSigningKey, encodeKey, Signer } from './sign-request.js'

// The keys from the examples in AWS's documentation of Signature Version 4 for S3.
const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}
const NOW_MS = Date.UTC(2013, 4, 24)

test('the signature is that of AWS’s example “GET Bucket Lifecycle”', () => {
  const headers = new Signer('us-east-1').sign(
    { method: 'GET', host: 'examplebucket.s3.amazonaws.com', path: '/', query: 'lifecycle=', headers: {} },
    credentials,
    NOW_MS,
  )
  assert.equal(
    headers.authorization,
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  )
})

test('the signature is that of AWS’s example “GET Bucket (List Objects)”', () => {
  const headers = new Signer('us-east-1').sign(
    {
      method: 'GET',
      host: 'examplebucket.s3.amazonaws.com',
      path: '/',
      query: 'max-keys=2&prefix=J',
      headers: {},
    },
    credentials,
    NOW_MS,
  )
  assert.match(
    headers.authorization ?? '',
    /34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7$/,
  )
})

test('a signer follows the day, the key and the session', () => {
  const signer = new Signer('us-east-1')
  const request = { method: 'GET', host: 'h', path: '/', query: '', headers: {} } as const
  const first = signer.sign(request, credentials, NOW_MS)
  assert.deepEqual(signer.sign(request, credentials, NOW_MS), first)
  const others = [
    signer.sign(request, credentials, NOW_MS + 86_400_000),
    signer.sign(request, { ...credentials, secretAccessKey: 'other' }, NOW_MS),
    signer.sign(request, { ...credentials, sessionToken: 'token' }, NOW_MS),
  ]
  const signatures = new Set(
    [first, ...others].map((headers) => headers.authorization?.split('Signature=')[1]),
  )
  assert.equal(signatures.size, 4)
  assert.equal(others[2]?.['x-amz-security-token'], 'token')
})

test('encodeKey escapes as S3 expects it in the canonical request', () => {
  assert.equal(
    encodeKey("a b/ü+~!'()*?#%&=:@,;$"),
    'a%20b/%C3%BC%2B~%21%27%28%29%2A%3F%23%25%26%3D%3A%40%2C%3B%24',
  )
})

test('the key of a multi-region signature is that of AWS’s own signers', () => {
  const key = deriveSigningKey({
    accessKeyId: 'AKISORANDOMAASORANDOM',
    secretAccessKey: 'q+jcrXGc+0zWN6uzclKVhvMmUsIfRPa4rlRandom',
  })
  const { x, y } = createPublicKey(key).export({ format: 'jwk' })
  const hex = (text: string | undefined) => Buffer.from(text ?? '', 'base64url').toString('hex')
  assert.equal(hex(x), '15d242ceebf8d8169fd6a8b5a746c41140414c3b07579038da06af89190fffcb')
  assert.equal(hex(y), '0515242cedd82e94799482e4c0514b505afccf2c0c98d6a553bf539f424c5ec0')
})

test('requests to several regions are signed by AWS Signature Version 4A', () => {
  const request = { method: 'GET', host: 'a.mrap.example', path: '/k', query: '', headers: {} } as const
  const headers = new Signer('*').sign(request, credentials, NOW_MS)
  const [, signature = ''] =
    /^AWS4-ECDSA-P256-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/20130524\/s3\/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-region-set, Signature=([0-9a-f]+)$/.exec(
      headers.authorization!,
    ) ?? []
  assert.equal(headers['x-amz-region-set'], '*')
  const empty = headers['x-amz-content-sha256']
  const canonical = `GET\n/k\n\nhost:a.mrap.example\nx-amz-content-sha256:${empty}\nx-amz-date:20130524T000000Z\nx-amz-region-set:*\n\nhost;x-amz-content-sha256;x-amz-date;x-amz-region-set\n${empty}`
  const text = `AWS4-ECDSA-P256-SHA256\n20130524T000000Z\n20130524/s3/aws4_request\n${hash('sha256', canonical, 'hex')}`
  const key = createPublicKey(deriveSigningKey(credentials))
  assert.ok(verify('sha256', Buffer.from(text), key, Buffer.from(signature, 'hex')))
})
