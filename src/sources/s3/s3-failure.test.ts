import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeAnswer, describeConnectionError } from './s3-failure.js'

const about = {
  what: 's3://bucket/flowers/',
  receivedBytes: undefined,
  expectedBytes: 0,
  stallTimeoutMs: 1000,
}

test('https to a server without TLS is told at once, without the words of OpenSSL', () => {
  const error = Object.assign(
    new Error('write EPROTO 40F7:error:0A00010B:SSL routines:wrong version number:\n'),
    {
      code: 'EPROTO',
    },
  )
  const failure = describeConnectionError(error, { ...about, origin: 'https://127.0.0.1:9000' })
  assert.equal(failure.message, 's3://bucket/flowers/: https://127.0.0.1:9000 does not speak TLS')
  assert.match(failure.hint ?? '', /http:\/\//)
  assert.equal(failure.isTransient, false)
})

test('a name that is not known asks for the endpoint of a server other than AWS', () => {
  const error = Object.assign(new Error('getaddrinfo ENOTFOUND x'), { code: 'ENOTFOUND' })
  const failure = describeConnectionError(error, { ...about, origin: 'https://x.s3.amazonaws.com' })
  assert.match(failure.hint ?? '', /`endpoint:` in dsc\.yaml/)
  assert.deepEqual([failure.isTransient, failure.isAway], [true, true]) // name servers fail over, too
})

for (const { status, code, message, failure, says, hint } of [
  {
    status: 400,
    code: 'ExpiredToken',
    message: '',
    failure: 'SOURCE_DENIED',
    says: /expired/,
    hint: /new credentials/,
  },
  {
    status: 400,
    code: 'InvalidToken',
    message: '',
    failure: 'SOURCE_DENIED',
    says: /token/,
    hint: /new credentials/,
  },
  {
    status: 403,
    code: 'InvalidObjectState',
    message: '',
    failure: 'SOURCE_DENIED',
    says: /archived/,
    hint: /restore/,
  },
  {
    status: 400,
    code: 'InvalidRequest',
    message: 'The object was stored using a form of Server Side Encryption.',
    failure: 'SOURCE_DENIED',
    says: /SSE-C/,
    hint: /SSE-S3/,
  },
  {
    status: 403,
    code: 'AccessDenied',
    message: 'not authorized to perform: kms:Decrypt',
    failure: 'SOURCE_DENIED',
    says: /KMS/,
    hint: /kms:Decrypt/,
  },
  {
    status: 400,
    code: 'KMS.DisabledException',
    message: '',
    failure: 'SOURCE_DENIED',
    says: /KMS/,
    hint: /enable/,
  },
])
  test(`${status} ${code} is ${failure}, with a hint of its own`, () => {
    const found = describeAnswer({ what: 's3://b/k', status, code, message, headers: {}, nowMs: 0 })
    assert.equal(found.code, failure)
    assert.match(found.message, says)
    assert.match(found.hint ?? '', hint)
    assert.doesNotMatch(found.hint ?? '', /pathStyle/)
  })
