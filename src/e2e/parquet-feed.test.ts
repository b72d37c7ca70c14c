import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Feed, type OpenFeedOptions, readRow } from '../exports/index.js'
import { isDscError } from '../failure/dsc-error.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { copyParquet, PARQUET_FIXTURES } from '../testing/parquet-files.js'
import { sampleBytes, writeSamples } from '../testing/sample-folder.js'
import { makeWorld, type World, type WorldSettings } from '../testing/world.js'
import { openWorldFeed } from '../testing/world-feed.js'

const SEED = 9
const BATCH = 8
/** Laid out as Hugging Face's hub has it. */
const FILES = {
  'README.md': 'rows.json',
  'data/train-00000-of-00003.parquet': 'snappy.parquet',
  'data/train-00001-of-00003.parquet': 'groups.parquet',
  'data/train-00002-of-00003.parquet': 'v2.parquet',
}
const ROWS_PER_FILE = 24
const COUNT = 3 * ROWS_PER_FILE
const TEXTS = (
  JSON.parse(readFileSync(join(PARQUET_FIXTURES, 'rows.json'), 'utf8'))['brotli.parquet'] as {
    text: string | null
  }[]
).map(({ text }) => text)

async function makeRowsWorld(context: TestContext, settings: WorldSettings = {}): Promise<World> {
  const world = await makeWorld(context, settings)
  copyParquet(join(world.directory, 'source'), FILES)
  await world.configure({
    ...settings,
    datasets: { rows: { source: `file://${join(world.directory, 'source')}`, include: ['**/*.parquet'] } },
  })
  return world
}

const open = (world: World, options: Partial<OpenFeedOptions>) =>
  openWorldFeed(world, {
    batchSize: BATCH,
    seed: SEED,
    memoryBytes: 2 ** 20,
    cacheFolder: join(world.directory, 'user', 'samples'),
    ...options,
  })

/** Reads to the end of the pass, or so many batches; every row is the one that its name says. */
async function readRows(feed: Feed, columns: readonly string[], batches = Number.POSITIVE_INFINITY) {
  const ids: number[] = []
  let read = 0
  for await (const batch of feed) {
    for (const { id, name, data } of batch) {
      const row = readRow(data)
      const place = id % ROWS_PER_FILE
      const file = Object.keys(FILES)[1 + Math.floor(id / ROWS_PER_FILE)]
      assert.equal(name, `${file}:${place}`)
      assert.deepEqual(Object.keys(row), columns)
      assert.equal(row.text, TEXTS[place])
      ids.push(id)
    }
    if (++read === batches) break
  }
  return ids
}

const expected = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })]
const chargedBytes = (world: World) =>
  world.query<{ charged_bytes: number }>('SELECT charged_bytes FROM copies')[0]?.charged_bytes ?? 0

test('rows of a dataset come in global order, unpacked beside its files and charged for', async (context) => {
  const world = await makeRowsWorld(context)
  assert.equal((await world.dsc('prepare', 'rows')).code, 0)
  const before = chargedBytes(world)
  const feed = await open(world, { dataset: 'rows', columns: ['text', 'i64'] })
  const [copy] = world.query<{ directory: string }>('SELECT directory FROM copies')
  const [rows] = readdirSync(join(copy!.directory, 'rows'))
  const folder = join(copy!.directory, 'rows', rows!)
  const unpacked = statSync(join(folder, 'data/train-00000-of-00003.parquet.rows'))
  assert.ok(chargedBytes(world) >= before + 3 * unpacked.size, 'the copy is charged for its rows')
  assert.deepEqual(await readRows(feed, ['text', 'i64']), expected(0))
  assert.deepEqual(await readRows(feed, ['text', 'i64']), expected(1))
  await feed.close()
  const again = await open(world, { dataset: 'rows', columns: ['text', 'i64'], start: 'staged' })
  assert.equal(statSync(join(folder, 'data/train-00000-of-00003.parquet.rows')).ino, unpacked.ino)
  assert.deepEqual(await readRows(again, ['text', 'i64']), expected(0))
  await again.close()
  assert.equal((await world.dsc('verify', 'rows')).code, 0)
  assert.equal((await world.dsc('evict', 'rows', '--yes')).code, 0)
  assert.ok(!existsSync(copy!.directory), 'rows vanish with their copy')
})

test('a state of rows goes on with the very next batch, in another feed with two ranks', async (context) => {
  const world = await makeRowsWorld(context)
  const columns = ['i8', 'text']
  const first = await open(world, { dataset: 'rows', columns })
  const ids = await readRows(first, columns, 3)
  const state = first.state()
  await first.close()
  const parts: number[][] = []
  for (const rank of [0, 1]) {
    const feed = await open(world, {
      dataset: 'rows',
      columns,
      batchSize: BATCH / 2,
      rank,
      world: 2,
    })
    await feed.seek(state)
    parts.push(await readRows(feed, columns))
    await feed.close()
  }
  for (let at = 0; at < parts[0]!.length; at += BATCH / 2)
    for (const part of parts) ids.push(...part.slice(at, at + BATCH / 2))
  assert.deepEqual(ids, expected(0))
})

test('rows and plain files are fed in one mix', async (context) => {
  const world = await makeRowsWorld(context)
  const plain = join(world.directory, 'plain')
  writeSamples(plain, 40, () => 500)
  const feed = await open(world, { mix: { rows: 1, [plain]: 0.5 } })
  const visits = { rows: 0, plain: 0 }
  for await (const batch of feed)
    for (const { name, data } of batch) {
      const part = name.split('/', 1)[0] as keyof typeof visits
      visits[part] += 1
      if (part === 'rows') assert.equal(readRow(data).text, TEXTS[Number(name.split(':')[1])])
      else assert.ok(data.equals(sampleBytes(Number(name.slice(-10, -4)), 500)))
    }
  const read = visits.rows + visits.plain
  assert.equal(read, Math.floor((COUNT + 20) / BATCH) * BATCH)
  assert.ok(visits.plain >= 20 - BATCH && visits.plain <= 20, `${visits.plain} of 20`)
})

test('rows of a folder that is no dataset go to the cache of its user', async (context) => {
  const world = await makeRowsWorld(context)
  const source = join(world.directory, 'source', 'data')
  const feed = await open(world, { dataset: source, columns: ['text'] })
  const ids: number[] = []
  for await (const batch of feed)
    for (const { id, data } of batch) {
      assert.deepEqual({ ...readRow(data) }, { text: TEXTS[id % ROWS_PER_FILE] })
      ids.push(id)
    }
  assert.deepEqual(ids, expected(0))
  assert.equal(readdirSync(join(world.directory, 'user', 'rows')).length, 1)
})

test('a column that is not there is named, and so is what is', async (context) => {
  const world = await makeRowsWorld(context)
  await assert.rejects(open(world, { dataset: 'rows', columns: ['texts'] }), (error) => {
    assert.ok(isDscError(error, 'USAGE'))
    assert.match(`${error.message} ${error.hint}`, /train-00000.* has no column texts .*flag, i8, .*text/)
    return true
  })
  assert.equal(world.query('SELECT task FROM leases').length, 0)
})

/** The disk has room for the copy of rows, and for nothing else. */
async function fillQuota(world: World): Promise<void> {
  assert.equal((await world.dsc('prepare', 'rows')).code, 0)
  await world.configure({
    cache: { minFree: '900TiB' },
    datasets: { rows: { source: `file://${join(world.directory, 'source')}`, include: ['**/*.parquet'] } },
  })
}

test('rows that the quota has no room for are read in row groups, and that is told', async (context) => {
  const world = await makeRowsWorld(context)
  await fillQuota(world)
  const columns = ['text', 'i64']
  const first = await open(world, { dataset: 'rows', columns, batchSize: 4 })
  const ids = await readRows(first, columns, 5)
  const state = first.state()
  assert.match(state.order, /^groups-\d+$/)
  await first.close()
  const parts: number[][] = []
  const half = { dataset: 'rows', columns, batchSize: 2, world: 2 }
  await assert.rejects(open(world, { ...half, rank: 0 }), (error) => {
    assert.ok(isDscError(error, 'USAGE'))
    return /no room .* others may have another/.test(error.message) && error.hint?.includes(state.order)
  })
  for (const rank of [0, 1]) {
    const feed = await open(world, { ...half, rank, order: state.order })
    await feed.seek(state)
    parts.push(await readRows(feed, columns))
    await feed.close()
  }
  for (let at = 0; at < parts[0]!.length; at += 2)
    for (const part of parts) ids.push(...part.slice(at, at + 2))
  assert.deepEqual(
    ids.toSorted((a, b) => a - b),
    [...Array(COUNT).keys()],
    'each row once',
  )
  const cli = await world.dsc('feed', 'plan', 'rows', '--columns', 'text,i64')
  assert.match(cli.stderr, /rows are not unpacked \(no room for rows .*\), but read in row groups/)
})

test('rows that the quota has no room for are refused with what they need, and nothing is left of them', async (context) => {
  const world = await makeRowsWorld(context)
  await fillQuota(world)
  const bytes = chargedBytes(world)
  await assert.rejects(open(world, { dataset: 'rows', order: 'shuffle' }), {
    code: 'QUOTA_EXCEEDED',
    message: /no room for rows on node node-a: it needs /,
  })
  assert.ok(chargedBytes(world) < bytes + 4096 * 8, 'only empty folders are left')
  assert.equal(world.query('SELECT task FROM leases').length, 0)
})
