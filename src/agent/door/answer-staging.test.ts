import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Dataset, deriveDatasetName } from '../../model/dataset.js'
import type { ListOptions } from '../../sources/source.js'
import { ADA, EVE, openService, prepareAs, silently } from '../../testing/door-service.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { openHeldSource } from '../../testing/held-source.js'
import { waitFor } from '../../testing/world.js'
import { createDoorApi } from './door-api.js'
import { DoorClient } from './door-client.js'

const SECRET = 'file:///srv/secret/'
const MODEL = 'hf://org/model'

for (const { what, name, source, code } of [
  { what: 'a secret that another node names', name: 'secret', source: SECRET, code: 'NOT_PERMITTED' },
  {
    what: 'a secret that another node took by its URL',
    name: deriveDatasetName(SECRET),
    source: SECRET,
    code: 'NOT_PERMITTED',
  },
  {
    what: 'a name that another node gives a public source',
    name: 'birds',
    source: MODEL,
    code: 'DATASET_UNKNOWN',
  },
])
  test(`${what} is no dataset of this service`, async (context) => {
    const { as, cache } = await openService(context)
    const other = await openExampleCache(context, { record: cache.record, node: 'other' })
    const dataset = { ...other.makeDataset(name), source }
    await other.prepare(dataset)
    await assert.rejects(as(EVE).api.prepare({ ...prepareAs('job'), dataset }, silently), {
      code,
    })
    assert.deepEqual(await cache.record.listCopies({ node: cache.node }, 0), [])
  })

test('what an admin stages is ready for everybody, and read again for admins alone', async (context) => {
  const { as, makeDataset } = await openService(context)
  const dataset = { ...makeDataset(deriveDatasetName(SECRET)), source: SECRET }
  const staged = await as(0).api.prepare({ ...prepareAs('prolog'), dataset }, silently)
  const asked = { ...prepareAs('job'), dataset }
  const ready = await as(ADA).api.prepare(asked, silently)
  assert.deepEqual([ready.copy.copyId, ready.isStagedHere], [staged.copy.copyId, false])
  await assert.rejects(as(ADA).api.prepare({ ...asked, isRefresh: true }, silently), {
    code: 'NOT_PERMITTED',
  })
})

test('a user who reads during the download waited until the first sample, as their own client says', async (context) => {
  const source = openHeldSource({ rose: 'red' })
  const letGo = source.hold('rose')
  const { path, as, cache, flowers } = await openService(context, { openSource: async () => source })
  as(ADA)
  const calls: string[] = []
  const noted = Promise.withResolvers<void>()
  const client = new DoorClient(path, { onAway: () => {} })
  const ask: DoorClient['ask'] = async (operation, input, options) => {
    const call = (input as { readonly call?: string }).call
    if (call !== undefined) calls.push(call)
    const answer = await client.ask(operation, input, options)
    if (operation === 'noteRead') noted.resolve()
    return answer as never
  }
  const api = createDoorApi({ path, ask } as DoorClient, {})
  const firstRead = Promise.withResolvers<number>()
  const reading = { ...silently, firstRead: firstRead.promise }
  const prepared = api.prepare({ ...prepareAs('job'), dataset: flowers }, reading)
  await waitFor('the download', () => source.fetches('rose') > 0)
  as(EVE)
  await client.ask('noteRead', { call: calls[0], waitedMs: 3 })
  as(ADA)
  firstRead.resolve(7)
  await noted.promise
  await sleep(50)
  letGo()
  await prepared
  const [event] = await cache.record.listEvents({ kinds: ['leased'], limit: 1 })
  assert.deepEqual([event!.detail.isHit, event!.detail.waitedMs], [false, 7])
})

test('only an admin says at which endpoint a source is read', async (context) => {
  const { as, cache, makeDataset } = await openService(context)
  const endpoint = 'http://127.0.0.1:1'
  const dataset = { ...makeDataset(deriveDatasetName(MODEL, { endpoint })), source: MODEL, endpoint }
  const asked = { ...prepareAs('job'), dataset }
  await assert.rejects(as(EVE).api.prepare(asked, silently), { code: 'DATASET_UNKNOWN' })
  assert.deepEqual(await cache.record.listCopies({}, 0), [])
  assert.deepEqual((await as(0).api.prepare(asked, silently)).copy.source, dataset)
  await assert.rejects(as(EVE).api.prepare({ ...asked, isRefresh: true }, silently), {
    code: 'DATASET_UNKNOWN',
  })
})

test('another node’s copy says nothing about how a public source is reached', async (context) => {
  const { as, cache, makeDataset } = await openService(context)
  const other = await openExampleCache(context, { record: cache.record, node: 'other' })
  const dataset = { ...makeDataset(deriveDatasetName(MODEL)), source: MODEL }
  await other.prepare({ ...other.makeDataset(dataset.name), source: MODEL, endpoint: 'http://10.0.0.1' })
  const { copy } = await as(EVE).api.prepare({ ...prepareAs('job'), dataset }, silently)
  assert.deepEqual(copy.source, { ...dataset, anonymous: true })
})

test('the listing that is staged is the one that a user’s limit is asked for', async (context) => {
  const { as, cache, makeDataset } = await openService(context)
  const dataset = { ...makeDataset(deriveDatasetName(MODEL)), source: MODEL }
  const { openSource } = cache
  let listings = 0
  Object.assign(cache, {
    openSource: async (asked: Dataset) => {
      const source = await openSource(asked)
      const list = (options: ListOptions) => {
        listings++
        return source.list(options)
      }
      return { ...source, list }
    },
  })
  await as(EVE).api.prepare({ ...prepareAs('job'), dataset }, silently)
  assert.equal(listings, 1)
})

test('a URL whose derived name another source holds is not staged', async (context) => {
  const { as, cache, makeDataset } = await openService(context)
  const dataset = { ...makeDataset(deriveDatasetName(MODEL)), source: MODEL }
  await cache.record.saveDataset({ ...dataset, source: 'hf://org/other' }, 0)
  await assert.rejects(as(EVE).api.prepare({ ...prepareAs('job'), dataset }, silently), {
    code: 'DATASET_UNKNOWN',
  })
  assert.deepEqual(await cache.record.listCopies({}, 0), [])
})

test('a user’s URL is remembered as it was asked for, and not before there is room for it', async (context) => {
  const { as, cache, makeDataset } = await openService(context)
  const text = 'x'.repeat(10 * 1024 * 1024)
  const [model, big] = [MODEL, 'hf://org/big'].map((source) => ({
    ...makeDataset(deriveDatasetName(source), { a: source === MODEL ? 'a' : text }),
    source,
  })) as [Dataset, Dataset]
  await assert.rejects(as(EVE).api.prepare({ ...prepareAs('job'), dataset: big }, silently), {
    code: 'QUOTA_EXCEEDED',
  })
  assert.deepEqual(await cache.record.listDatasets(), [])
  const { copy } = await as(EVE).api.prepare({ ...prepareAs('job'), dataset: model }, silently)
  assert.equal(copy.source?.anonymous, true)
  assert.deepEqual(await cache.record.listDatasets(), [model])
})

test('a plan finds what a prepare would find, ready from a source that its asker may not read', async (context) => {
  const { as, makeDataset } = await openService(context)
  const dataset = { ...makeDataset(deriveDatasetName(SECRET)), source: SECRET }
  const asked = { dataset, isRefresh: false, isPrefetch: false, parties: [] }
  await assert.rejects(as(ADA).api.planPrepare(asked, silently), { code: 'NOT_PERMITTED' })
  const { copy } = await as(0).api.prepare({ ...prepareAs('prolog'), dataset }, silently)
  const { outcome, path } = await as(ADA).api.planPrepare(asked, silently)
  assert.deepEqual([outcome, path], ['ready', copy.path])
  await assert.rejects(as(ADA).api.planPrepare({ ...asked, isRefresh: true }, silently), {
    code: 'NOT_PERMITTED',
  })
})
