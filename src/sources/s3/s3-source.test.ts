import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { startCountingStore } from '../../testing/counting-store.js'
import { startSourceBench } from '../../testing/source-bench.js'
import { testSourceContract } from '../source.contract.js'
import type { ListedObject } from '../source.js'
import { openS3Source } from './s3-source.js'

testSourceContract('s3', async () => {
  const bench = await startSourceBench()
  const { bucket, source } = await bench.makeSource({})
  return {
    source,
    hasBrokenXml: bench.server.isS3rver,
    put: (key, body) => bench.server.putObject(bucket, `data/${key}`, body),
    remove: (key) => bench.server.deleteObject(bucket, `data/${key}`),
    close: () => bench.close(),
  }
})

test('one object is a source, also in parts, and beside objects whose names begin alike', async (context) => {
  const body = randomBytes(30_000_000)
  const store = await startCountingStore(
    new Map([
      ['data/x.tar', body],
      ['data/x.tar.gz', randomBytes(10)],
    ]),
  )
  context.after(() => store.close())
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' })
  const { endpoint } = store
  const place = { region: 'us-east-1', pathStyle: true, include: [], exclude: [], endpoint }
  const source = openS3Source({ name: 'd', source: 's3://bucket/data/x.tar', ...place })
  context.after(() => source.close())
  const listed: ListedObject[] = []
  for await (const page of source.list({})) listed.push(...page)
  assert.deepEqual(
    listed.map(({ key, sizeBytes }) => [key, sizeBytes]),
    [['x.tar', body.length]],
  )
  const fetcher = await source.openFetcher({ connections: 1 })
  context.after(() => fetcher.close())
  const chunks: Buffer[] = []
  const sink = (chunk: Uint8Array) => {
    chunks.push(Buffer.from(chunk))
    return 0
  }
  const request = { ...listed[0]!, stallTimeoutMs: 5000, sink }
  await fetcher.inspect(request)
  await fetcher.fetch({ ...request, offset: 0, length: 1000 })
  await fetcher.fetch({ ...request, offset: 1000, length: body.length - 1000 })
  assert.ok(Buffer.concat(chunks).equals(body))
})
