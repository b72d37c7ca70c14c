import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DscError } from '../../failure/dsc-error.js'
import { type Dataset, deriveDatasetName, nameForOwner } from '../../model/dataset.js'
import { openFileSource } from '../../sources/file/file-source.js'
import type { HandedAccess, OwnAccess } from '../../sources/own-access.js'
import { ADA, EVE, openService, prepareAs, signal, silently } from '../../testing/door-service.js'
import { HandedAccesses, keepAccess } from './handed-access.js'

const KEYS = { accessKeyId: 'AKIA', secretAccessKey: 'CANARY', sessionToken: 'CANARY', expiresAtMs: 4e12 }
const S3: HandedAccess = { scheme: 's3', isPathStyle: true, keys: KEYS }
const HUB: HandedAccess = { scheme: 'hf', endpoint: 'https://huggingface.co', token: 'CANARY' }
const undeclared = (source: string): Dataset => ({
  ...{ name: deriveDatasetName(source), source, include: [], exclude: [] },
})

/** A service whose sources open for every user who shows credentials; `shown` has them. */
async function openOwnService(context: Parameters<typeof openService>[0]) {
  const shown: (OwnAccess | undefined)[] = []
  const service = await openService(context, {
    openSource: async (_, own) => {
      shown.push(own)
      if (own === undefined) throw new DscError('SOURCE_DENIED', 'it is private')
      return openFileSource({ ...service.flowers, source: `file://${service.sources}/flowers/` })
    },
  })
  return { ...service, shown }
}

for (const { source, access, isReadBefore } of [
  { source: 's3://bucket/mine/', access: S3, isReadBefore: false },
  { source: 'hf://org/private', access: HUB, isReadBefore: true },
])
  test(`${source} is read with its user's own credentials once the service may not, and is theirs`, async (context) => {
    const { as, shown, cache } = await openOwnService(context)
    const asked = { ...prepareAs('job'), dataset: undeclared(source) }
    const { copy } = await as(ADA, async () => access).api.prepare(asked, silently)
    assert.equal(copy.dataset, nameForOwner(asked.dataset.name, ADA))
    assert.deepEqual(copy.source?.readers, [`user:uid-${ADA}`])
    assert.equal(shown.length, isReadBefore ? 2 : 1)
    const own = shown.at(-1)!
    assert.deepEqual(own.scheme === 's3' ? await own.getKeys() : own, access.scheme === 's3' ? KEYS : HUB)
    const told = JSON.stringify([
      await cache.record.listCopies({}, 0),
      await cache.record.listDatasets(),
      await cache.record.listEvents({ limit: 100 }),
      await cache.record.listLeases({}),
    ])
    assert.doesNotMatch(told, /CANARY/)
    await assert.rejects(
      as(EVE, async () => access).api.prepare({ ...asked, dataset: copy.source! }, silently),
      {
        code: 'NOT_PERMITTED',
      },
    )
    const { copy: other } = await as(EVE, async () => access).api.prepare(asked, silently)
    assert.notEqual(other.path, copy.path)
    assert.deepEqual(
      (await as(EVE).record.listCopies({}, 0)).map(({ dataset }) => dataset),
      [other.dataset],
    )
  })

test('nothing is handed over for what is declared, or is of another user, or by somebody who has nothing', async (context) => {
  const { as, shown, flowers } = await openOwnService(context)
  const find = async () => assert.fail('credentials were looked for')
  const asked = prepareAs('job')
  await assert.rejects(as(ADA, find).api.prepare({ ...asked, dataset: flowers }, silently), {
    code: 'SOURCE_DENIED',
  })
  const theirs = undeclared('s3://bucket/theirs/')
  const dataset = { ...theirs, name: nameForOwner(theirs.name, EVE) }
  await assert.rejects(as(ADA, find).api.prepare({ ...asked, dataset }, silently), { code: 'NOT_PERMITTED' })
  await assert.rejects(as(ADA, async () => undefined).api.prepare({ ...asked, dataset: theirs }, silently), {
    code: 'NOT_PERMITTED',
    message: /an admin may stage this source/,
  })
  assert.ok(shown.every((own) => own === undefined))
})

test('a server that dsc.yaml does not name gets no credentials', async (context) => {
  const { as, shown } = await openOwnService(context)
  const asked = { ...prepareAs('job'), dataset: undeclared('s3://bucket/mine/') }
  for (const endpoint of ['http://127.0.0.1:7071', 'https://169.254.169.254', 'https://amazonaws.example'])
    await assert.rejects(as(ADA, async () => ({ ...S3, endpoint })).api.prepare(asked, silently), {
      code: 'NOT_PERMITTED',
      message: /credentials go to AWS/,
    })
  assert.deepEqual(shown, [])
})

test('a malformed hand-over is refused without showing it', async (context) => {
  const { client, as } = await openOwnService(context)
  const dataset = undeclared('s3://bucket/mine/')
  as(ADA)
  for (const own of [
    'CANARY',
    { ...S3, keys: 'CANARY' },
    { ...S3, keys: { ...KEYS, secretAccessKey: 'CANARY\nCANARY' } },
    { ...S3, keys: { ...KEYS, secretAccessKey: ['CANARY'] } },
    { ...HUB, token: 'CANARY CANARY' },
    { scheme: 'CANARY' },
  ])
    await assert.rejects(
      client.ask('prepare', { ...prepareAs('job'), dataset, own }),
      (error: DscError) => error.code === 'USAGE' && !error.message.includes('CANARY'),
    )
})

test('only the user who is asked gives new keys', async () => {
  const handed = new HandedAccesses()
  const calls: string[] = []
  const asked = handed.ask((line) => void calls.push((line as { call: string }).call), { uid: ADA, signal })
  handed.give(calls[0]!, { uid: EVE, access: HUB })
  handed.give(calls[0]!, { uid: ADA, access: S3 })
  assert.equal(await asked, S3)
  const none = handed.ask((line) => void calls.push((line as { call: string }).call), { uid: ADA, signal })
  handed.give(calls[1]!, { uid: ADA, access: undefined })
  await assert.rejects(none, { code: 'SOURCE_DENIED', message: /finds no new ones/ })
  const gone = new AbortController()
  const waiting = handed.ask(() => {}, { uid: ADA, signal: gone.signal })
  gone.abort()
  await assert.rejects(waiting, { code: 'SOURCE_DENIED', message: /their dsc is gone/ })
})

test('new keys change nothing else, and must be newer', async () => {
  const answers: HandedAccess[] = [
    { ...S3, endpoint: 'http://127.0.0.1:1', keys: { ...KEYS, accessKeyId: 'NEW' } },
    { ...S3, keys: { ...KEYS, expiresAtMs: 1 } },
  ]
  const own = keepAccess(S3, async () => answers.shift()!)
  assert.ok(own.scheme === 's3')
  assert.deepEqual(await own.getKeys(), KEYS)
  assert.deepEqual([(await own.getKeys()).accessKeyId, own.endpoint], ['NEW', undefined])
  await assert.rejects(async () => own.getKeys(), { code: 'SOURCE_DENIED', message: /expired, too/ })
})
