import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { admitRequest, decideFor } from '../../testing/example-staging.js'
import type { Cache } from '../cache.js'
import { copyDirectory, stagingDirectoryOf } from '../cache-layout.js'
import { finishPublished } from './finish-staging.js'
import { joinStaging } from './join-staging.js'

const VERSION = 'a'.repeat(64)

/** A staging whose files are admitted as `VERSION`, or not even listed; the record knows nothing about the disk. */
async function beginStaging(t: TestContext, { isAdmitted }: { readonly isAdmitted: boolean }) {
  const { cache, makeDataset } = await openExampleCache(t)
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
  const dataset = makeDataset('flowers')
  const turn = await joinStaging(
    cache,
    { dataset, lease },
    { isRefresh: false, signal: AbortSignal.timeout(60_000) },
  )
  assert.ok(turn.outcome === 'stage')
  const { copyId } = turn.copy
  if (isAdmitted)
    await cache.record.admit(
      admitRequest(copyId, turn.stageLeaseId, VERSION),
      decideFor(copyId),
      cache.nowMs(),
    )
  const version = isAdmitted ? VERSION : null
  return {
    cache,
    turn: { ...turn, copy: { ...turn.copy, version } },
    published: copyDirectory(cache.root, { dataset: 'flowers', version: VERSION, copyId }),
    staging: stagingDirectoryOf(cache.root, copyId),
  }
}

function fill(directory: string): void {
  mkdirSync(join(directory, 'files'), { recursive: true })
  writeFileSync(join(directory, 'files', 'a'), 'flowers')
}

for (const { name, isAdmitted, lies, isReady } of [
  { name: 'is ready where the rename was done', isAdmitted: true, lies: ['published'], isReady: true },
  { name: 'is not ready before the rename', isAdmitted: true, lies: ['staging'], isReady: false },
  { name: 'is not ready where nothing is left', isAdmitted: true, lies: [], isReady: false },
  {
    name: 'is not ready while it is filled again beside what an earlier attempt published',
    isAdmitted: true,
    lies: ['published', 'staging'],
    isReady: false,
  },
  { name: 'is not ready without a known version', isAdmitted: false, lies: ['published'], isReady: false },
] as readonly {
  name: string
  isAdmitted: boolean
  lies: readonly ('published' | 'staging')[]
  isReady: boolean
}[]) {
  test(`what a killed stager left ${name}`, async (t) => {
    const { cache, turn, ...places } = await beginStaging(t, { isAdmitted })
    for (const place of lies) fill(places[place])
    const staged = await finishPublished(cache, turn)
    const [copy] = await cache.record.listCopies({ copyId: turn.copy.copyId }, cache.nowMs())
    if (!isReady) {
      assert.equal(staged, undefined)
      assert.equal(copy?.state, isAdmitted ? 'staging' : 'reserved')
      return
    }
    assert.ok(staged?.outcome === 'ready')
    assert.deepEqual(
      [staged.isNew, staged.downloaded],
      [true, undefined],
      'what it fetched is not known any more',
    )
    assert.deepEqual([copy?.state, copy?.directory], ['ready', places.published])
    assert.equal(copy?.path, join(places.published, 'files'))
    assert.ok(copy.chargedBytes >= 'flowers'.length, `${copy.chargedBytes} bytes`)
    const [event] = await cache.record.listEvents({ copyId: copy.copyId, limit: 1 })
    assert.match(event?.reason ?? '', /^published by a stager that was killed/)
  })
}

test('what a killed stager published is lost to who is no longer the stager', async (t) => {
  const { cache, turn, published } = await beginStaging(t, { isAdmitted: true })
  fill(published)
  assert.deepEqual(await finishPublished(cache, { ...turn, stageLeaseId: 'another' }), { outcome: 'lost' })
  const [copy] = await cache.record.listCopies({ copyId: turn.copy.copyId }, cache.nowMs())
  assert.equal(copy?.state, 'staging')
})

test('a stager killed between rename and record leaves a copy that the next one needs no source for', async (t) => {
  const { cache, makeDataset, prepare, sources } = await openExampleCache(t)
  const dataset = makeDataset('flowers', { a: 'rose', b: 'tulip' })
  const die = async () => {
    throw new Error('killed')
  }
  const dying: Cache = { ...cache, record: { ...cache.record, markReady: die, endStaging: die } }
  await assert.rejects(prepare(dataset, { cache: dying }), /killed/)
  const [left] = await cache.record.listCopies({ dataset: 'flowers' }, cache.nowMs())
  assert.deepEqual(
    [left?.state, existsSync(stagingDirectoryOf(cache.root, left!.copyId))],
    ['staging', false],
  )
  const [stager] = await cache.record.listLeases({ copyId: left!.copyId, purpose: 'stage' })
  await cache.record.expireLeases(
    [{ leaseId: stager!.leaseId, reason: 'its process is gone' }],
    cache.nowMs(),
  )
  rmSync(sources, { recursive: true })
  const { copy, downloaded } = await prepare(dataset)
  assert.deepEqual([copy.copyId, downloaded], [left!.copyId, undefined])
  assert.deepEqual(
    ['a', 'b'].map((name) => readFileSync(join(copy.path, name), 'utf8')),
    ['rose', 'tulip'],
  )
})
