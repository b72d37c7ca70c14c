import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayNames } from './gateway-names.js'

const names = new GatewayNames(['gpu-07', 'https://data.example:8443', 'ready.cluster.example'])

for (const [host, kind, bucket] of [
  [undefined, 'gateway'],
  ['', 'gateway'],
  ['127.0.0.1:9300', 'gateway'],
  ['10.1.2.3', 'gateway'],
  ['[::1]:9300', 'gateway'],
  ['[::ffff:127.0.0.1]', 'gateway'],
  ['localhost', 'gateway'],
  ['LOCALHOST.:9300', 'gateway'],
  ['GPU-07:9300', 'gateway'],
  ['data.example', 'gateway'],
  ['data.example.', 'gateway'],
  // The gateway's own name may start like a bucket's.
  ['ready.cluster.example', 'gateway'],
  ['ml.data.example', 'bucket', 'ml'],
  ['a.b.data.example:443', 'bucket', 'a.b'],
  ['ml.localhost:9300', 'bucket', 'ml'],
  ['evil.example', 'foreign'],
  ['other.s3.example', 'foreign'],
  ['evildata.example', 'foreign'],
  ['127.0.0.1.evil.example', 'foreign'],
  ['localhost.evil.example', 'foreign'],
  ['cluster.example', 'foreign'],
] as const)
  test(`a request for the host ${host} is ${kind === 'bucket' ? `for the bucket ${bucket}` : kind}`, () => {
    const named = names.read(host)
    assert.equal(named.kind, kind)
    if (named.kind === 'bucket') assert.equal(named.bucket, bucket)
  })

test('a name that is given as a URL says how its clients speak', () => {
  assert.equal(names.schemeOf('Data.Example:8443'), 'https')
  assert.equal(names.schemeOf('gpu-07'), undefined)
  assert.equal(names.schemeOf(undefined), undefined)
})
