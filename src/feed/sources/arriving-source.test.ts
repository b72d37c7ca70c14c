import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { digestListing, listSamples } from '../../samples/listed-samples.js'
import { makeTestFolder, sampleBytes, writeSamples } from '../../testing/sample-folder.js'
import { openArenaFile } from '../arena/arena-file.js'
import { openReaderPool } from '../threads/reader-pool.js'
import { type Arrivals, ArrivingSource, type Wanted } from './arriving-source.js'

const COUNT = 200
const lengthOf = () => 100

/** Files that are here when the test says so. */
class ToldArrivals implements Arrivals {
  readonly name = 'a test'
  readonly isComplete = false
  readonly spoilt = new Set<number>()
  readonly ordered: Wanted[] = []
  reads = 0
  readonly here = new Map<Wanted, PromiseWithResolvers<boolean>>()

  isHere(): boolean {
    return false
  }

  order(wanted: readonly Wanted[]): void {
    this.ordered.push(...wanted)
  }

  noteRead(): void {
    this.reads += 1
  }

  waitFor(wanted: Wanted): Promise<boolean> {
    return this.arrivalOf(wanted).promise
  }

  arrivalOf(file: Wanted): PromiseWithResolvers<boolean> {
    const known = this.here.get(file) ?? Promise.withResolvers<boolean>()
    this.here.set(file, known)
    return known
  }
}

function openSource(t: TestContext) {
  const root = join(makeTestFolder(t), 'samples')
  writeSamples(root, COUNT, lengthOf)
  const files = readdirSync(root).map((path) => ({ path, size: readFileSync(join(root, path)).length }))
  const listed = listSamples(files, { folder: root, only: undefined, format: undefined })
  assert.ok(listed.kind === 'files')
  const { table } = listed
  const arena = openArenaFile('/dev/shm', 2 ** 20)
  const pool = openReaderPool(
    { arenaFd: arena.fd, folder: { root, tableBytes: table.bytes, known: table.known } },
    1,
  )
  t.after(async () => {
    await pool.close()
    arena.close()
  })
  const arrivals = new ToldArrivals()
  return { root, table, arena, arrivals, source: new ArrivingSource({ root, table, pool, arrivals }) }
}

test('samples are read as their files come, and their checksums are known from then on', async (t) => {
  const { source, arrivals, arena, table } = openSource(t)
  const told: unknown[] = []
  const request = { node: 0, samples: Uint32Array.of(7, 3), offsets: Float64Array.of(0, 4096), isMiss: false }
  const read = source.read(request, (i, status, origin) => told.push([i, status, origin]))
  arrivals.arrivalOf(3).resolve(true)
  while (told.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(told, [[1, 'ok', 'store']])
  assert.deepEqual([table.known![3], table.known![7]], [1, 0])
  arrivals.arrivalOf(7).resolve(false)
  await read
  assert.deepEqual(told.at(-1), [0, 'unreachable', undefined])
  assert.equal(arrivals.reads, 1)
  const bytes = Buffer.alloc(100)
  arena.read(bytes, 4096)
  assert.ok(bytes.equals(sampleBytes(3, 100)))
})

test('bytes that differ from those that were read first are corrupt', async (t) => {
  const { source, arrivals, table } = openSource(t)
  const statuses: string[] = []
  arrivals.arrivalOf(3).resolve(true)
  const request = { node: 0, samples: Uint32Array.of(3), offsets: Float64Array.of(0), isMiss: false }
  await source.read(request, (_, status) => statuses.push(status))
  table.crcs[3]! ^= 1
  await source.read(request, (_, status) => statuses.push(status))
  assert.deepEqual(statuses, ['ok', 'corrupt'])
  assert.equal(arrivals.reads, 1)
})

test('what streams will read is ordered in their order, each file once', (t) => {
  const { source, arrivals } = openSource(t)
  source.expect({}, [5, 3, 5, 199])
  source.expect({}, [4, 0])
  assert.deepEqual(arrivals.ordered, [5, 3, 199, 4, 0])
})

test('samples that are listed are those that are found once they are here', async (t) => {
  const { root, table } = openSource(t)
  const found = (await indexSamples(root, { cacheFolder: makeTestFolder(t) })).table
  assert.equal(table.fingerprint, '')
  assert.notEqual(found.fingerprint, '')
  assert.equal(digestListing(table, 'v'), digestListing(found, 'v'))
  assert.notEqual(digestListing(table, 'v'), digestListing(table, 'w'))
})
