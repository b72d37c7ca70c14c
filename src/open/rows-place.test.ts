import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fromText } from '../samples/byte-path.js'
import type { RowsKept } from '../samples/rows/rows-paths.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { findRowsPlace } from './rows-place.js'

/** The places for rows of a staged dataset, on a disk of 1 TB. */
async function makePlaces(t: TestContext, policy = {}) {
  const { cache, makeDataset, prepare } = await openExampleCache(t, { policy })
  const { copy } = await prepare(makeDataset('flowers'))
  const context = exampleSurroundings(cache, t.signal)
  const cacheFolder = join(await temporaryDirectory(t), 'samples')
  const open = async (of: typeof copy | undefined, kept: RowsKept = 'rows', columns?: readonly string[]) => {
    const options = findRowsPlace(context, {
      ...{ columns, reading: { kind: 'unpacked' } as const },
      ...{ copy: of, cacheFolder },
    })
    const place = await options.openPlace(fromText(copy.path), columns, kept)
    t.after(() => place.close())
    return place
  }
  const readCharge = async () => {
    const [now] = await cache.record.listCopies({ copyId: copy.copyId }, cache.nowMs())
    return now!.chargedBytes
  }
  return { cache, copy, context, cacheFolder, open, readCharge }
}

test('rows of a copy lie beside its files, and it is charged for them', async (t) => {
  const { copy, context, open, readCharge } = await makePlaces(t)
  const place = await open(copy)
  assert.ok(place.readPath.startsWith(join(copy.directory, 'rows/')), place.readPath)
  await place.makeRoom(1_000_000)
  assert.ok((await readCharge()) >= 1_000_000)
  writeFileSync(join(place.writePath, 'part'), Buffer.alloc(300_000))
  assert.ok(existsSync(join(place.readPath, 'part')), 'one folder by both paths')
  await place.settle()
  const settled = await readCharge()
  assert.ok(settled >= 300_000 && settled < 1_000_000, `charged ${settled}`)
  assert.match(context.told.notes[0]!, /^dsc: rows are unpacked, once: about /)
  assert.match(context.told.notes[1]!, /^dsc: rows were unpacked in [\d.]+ s, into \//)
})

test('rows that the quota has no room for are refused, and not charged', async (t) => {
  const { copy, open, readCharge } = await makePlaces(t, { maxPercent: 0.002 })
  const place = await open(copy)
  await assert.rejects(place.makeRoom(100_000_000), { code: 'QUOTA_EXCEEDED' })
  const charge = await readCharge()
  assert.ok(charge < 1_000_000, `charged ${charge}`)
})

test('other columns of the same files have a folder of their own', async (t) => {
  const { copy, open } = await makePlaces(t)
  const paths = [undefined, ['a'], ['a', 'b']].map(
    async (columns) => (await open(copy, 'rows', columns)).readPath,
  )
  assert.equal(new Set(await Promise.all(paths)).size, 3)
})

test('lengths, an adopted folder, and files of no copy go to the cache of this user', async (t) => {
  const { copy, cacheFolder, open } = await makePlaces(t)
  const adopted = { ...copy, directory: '/data/flowers' }
  const places = [await open(copy, 'lengths'), await open(adopted), await open(undefined)]
  for (const { readPath, writePath } of places) {
    assert.ok(readPath.startsWith(join(cacheFolder, '../rows/')), readPath)
    assert.equal(writePath, readPath)
  }
  await places[2]!.makeRoom(1)
  await assert.rejects(places[2]!.makeRoom(Number.MAX_SAFE_INTEGER), { code: 'DISK_FULL' })
})

test('a reader whose record cannot be written keeps rows to itself', async (t) => {
  const { cache, copy, cacheFolder } = await makePlaces(t)
  const readOnly = { ...cache, record: { ...cache.record, isReadOnly: true } }
  const context = exampleSurroundings(readOnly as typeof cache, t.signal)
  const options = findRowsPlace(context, {
    ...{ columns: undefined, reading: { kind: 'unpacked' } as const },
    ...{ copy, cacheFolder },
  })
  mkdirSync(cacheFolder, { recursive: true })
  const place = await options.openPlace(fromText(copy.path), undefined, 'rows')
  t.after(() => place.close())
  assert.ok(!place.readPath.startsWith(copy.directory))
})
