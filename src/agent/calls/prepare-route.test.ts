import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { NOW_MS } from '../../testing/example-copies.js'
import { answerPrepare } from './prepare-route.js'

const LEASE = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: NOW_MS + 1000 }

for (const [field, value] of [
  ['name', ['flowers']],
  ['source', ['s3://bucket/flowers/']],
  ['include', '*.jpg'],
  ['include', [5]],
  ['exclude', null],
  ['columns', 'image'],
  ['endpoint', 5],
  ['pathStyle', 'yes'],
  ['dialect', { quote: "'" }],
] as const)
  test(`a call whose dataset has ${field} ${JSON.stringify(value)} is refused before anything is done`, async () => {
    const dataset = { name: 'flowers', source: 's3://bucket/flowers/', [field]: value }
    const body = JSON.stringify({ dataset, lease: LEASE, isRefresh: false, sharedWith: [] })
    const answering = {
      cache: { nowMs: () => NOW_MS },
      request: Object.assign(Readable.from([Buffer.from(body)]), { headers: {} }),
    }
    await assert.rejects(answerPrepare(answering as unknown as Parameters<typeof answerPrepare>[0]), {
      code: 'USAGE',
      message: new RegExp(`^dataset\\.${field}(\\.0)?: expected`),
    })
  })
