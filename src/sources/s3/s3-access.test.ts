import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { listAll, readObject } from '../../testing/read-source.js'
import { type BenchSource, type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { openS3Source } from './s3-source.js'

let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())

async function listAndRead({ source }: Pick<BenchSource, 'source'>): Promise<string> {
  const objects = await listAll(source)
  const texts = await Promise.all(objects.map((object) => readObject(source, object)))
  return texts.join('')
}

test('requests are signed, keys and all', async () => {
  const from = await bench.makeSource({ 'a b/ü+(1).txt': 'signed' })
  assert.equal(await listAndRead(from), 'signed')
  assert.equal(bench.proxy.requests.length, 2)
  for (const { headers } of bench.proxy.requests)
    assert.match(headers.authorization ?? '', /^AWS4-HMAC-SHA256 /)
})

test('an anonymous source sends no signature', async () => {
  const from = await bench.makeSource({ a: 'x' }, { anonymous: true })
  await listAndRead(from).catch(() => {}) // a server may refuse; only the requests count
  assert.ok(bench.proxy.requests.length > 0)
  for (const { headers } of bench.proxy.requests) assert.equal(headers.authorization, undefined)
})

test('requester pays is said with every request', async () => {
  await listAndRead(await bench.makeSource({ a: 'x' }, { requesterPays: true }))
  assert.equal(bench.proxy.requests.length, 2)
  for (const { headers } of bench.proxy.requests) assert.equal(headers['x-amz-request-payer'], 'requester')
})

test('a profile of the AWS configuration gives the keys', async (context) => {
  const { dataset } = await bench.makeSource({ a: 'x' })
  const file = bench.makePath('credentials')
  const { accessKeyId, secretAccessKey } = bench.server
  writeFileSync(
    file,
    `[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n[work]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  )
  const before = { ...process.env }
  context.after(() => Object.assign(process.env, before))
  process.env.AWS_SHARED_CREDENTIALS_FILE = file
  const source = openS3Source({ ...dataset, profile: 'work' })
  assert.equal(await listAndRead({ source }), 'x')
  await source.close()
})

test('no credentials anywhere is SOURCE_DENIED with a hint', async (context) => {
  const { dataset } = await bench.makeSource({ a: 'x' })
  const before = { ...process.env }
  context.after(() => Object.assign(process.env, before))
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) delete process.env[name]
  const source = openS3Source(dataset)
  await assert.rejects(listAndRead({ source }), { code: 'SOURCE_DENIED', hint: /AWS_PROFILE/ })
  await source.close()
})

test('unknown keys are SOURCE_DENIED', async (context) => {
  const { dataset } = await bench.makeSource({ a: 'x' })
  const before = { ...process.env }
  context.after(() => Object.assign(process.env, before))
  process.env.AWS_ACCESS_KEY_ID = 'nobody'
  const source = openS3Source(dataset)
  await assert.rejects(listAndRead({ source }), { code: 'SOURCE_DENIED', hint: /credentials/ })
  await source.close()
})
