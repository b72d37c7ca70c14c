import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeConnectionError } from './s3-failure.js'

const seen = { what: 's3://flowers/a', receivedBytes: undefined, expectedBytes: 0, stallTimeoutMs: 1000 }

for (const { origin, bucket, hint } of [
  { origin: 'http://flowers.store.example:9000', bucket: 'flowers', hint: /set pathStyle: true/ },
  { origin: 'http://store.example:9000', bucket: 'flowers', hint: /check the host name/ },
  { origin: 'https://flowers.s3.eu-west-1.amazonaws.com', bucket: 'flowers', hint: /check the host name/ },
]) {
  test(`a host that is not there (${origin}) is hinted at with ${hint.source}`, () => {
    const error = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
    assert.match(String(describeConnectionError(error, { ...seen, origin, bucket }).hint), hint)
  })
}
