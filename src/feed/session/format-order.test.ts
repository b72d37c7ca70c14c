import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import type { RowsOptions, RowsReading } from '../../samples/rows/rows-place.js'
import { openTestFeedClient } from '../../testing/feed-client.js'
import { copyParquet } from '../../testing/parquet-files.js'
import { readAllSamples } from '../../testing/read-all-samples.js'
import { rowsOptions } from '../../testing/rows-options.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { shuffleGroups } from '../plan/group-order.js'
import { shuffleSamples } from '../plan/order.js'
import { folderSupply, groupSupply } from '../sources/folder-supply.js'
import { SessionServer } from './session-server.js'

const COUNT = 20
/** Number of groups open at a time if rows are read in groups. */
const WINDOW = 3
const GLOBAL_BATCH = 4
const SEED = 7
const FIXTURES = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'formats')

const lines = (line: (id: number) => string) => Array.from({ length: COUNT }, (_, id) => line(id)).join('\n')

/** Writes 20 samples of a format into a folder. */
const WRITERS: Readonly<Record<string, (folder: string) => void>> = {
  files: (folder) => writeSamples(folder, COUNT, (id) => 10 + id),
  shards(folder) {
    writeSamples(join(folder, '..', 'members'), COUNT, (id) => 10 + id)
    execFileSync('tar', ['-C', join(folder, '..', 'members'), '-cf', join(folder, '0.tar'), '.'])
  },
  jsonl: (folder) =>
    writeFileSync(
      join(folder, 'a.jsonl'),
      lines((id) => `{"id":${id}}`),
    ),
  csv: (folder) => writeFileSync(join(folder, 'a.csv'), `id,text\n${lines((id) => `${id},"a\n${id}"`)}`),
  tsv: (folder) => writeFileSync(join(folder, 'a.tsv'), `id\ttext\n${lines((id) => `${id}\tx`)}`),
  mds: (folder) => cpSync(join(FIXTURES, 'mds'), folder, { recursive: true }),
  litdata: (folder) => cpSync(join(FIXTURES, 'litdata'), folder, { recursive: true }),
  parquet: writeParquet,
  'parquet in groups': writeParquet,
}

function writeParquet(folder: string): void {
  copyParquet(folder, { 'a.parquet': 'groups.parquet', 'b/c.parquet': 'groups.parquet' })
}

const readingOf = (format: string): RowsReading =>
  format.endsWith('groups') ? { kind: 'groups', window: WINDOW } : { kind: 'unpacked' }

/** Makes the files unwritable, like those of copies. */
function protect(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
    if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o444)
}

async function serve(context: TestContext, format: string, memoryBytes: number) {
  const home = makeTestFolder(context)
  const folder = join(home, 'data')
  mkdirSync(folder)
  const [kind, way] = format.split(', ')
  WRITERS[kind!]!(folder)
  if (way === 'mapped') protect(folder)
  const index = (rows: RowsOptions) => indexSamples(folder, { cacheFolder: undefined, rows })
  const listed = await index(rowsOptions(join(home, 'rows'), readingOf(kind!)))
  const supply = listed.groups ? groupSupply(listed) : folderSupply(listed)
  const engine = openFeedEngine(supply, { seed: SEED, memoryBytes, threads: 1, k: 3 })
  assert.equal(engine.mapped !== undefined, way === 'mapped' || kind === 'parquet')
  await engine.ready()
  const server = await SessionServer.open({ engine, socketPath: join(home, 's') })
  context.after(async () => {
    await server.close()
    await engine.close()
  })
  const unpacked = listed.groups ? await index(rowsOptions(join(home, 'rows'))) : listed
  assert.equal(unpacked.table.fingerprint, listed.table.fingerprint)
  const samples = readAllSamples(unpacked)
  const order = listed.groups
    ? shuffleGroups(listed.groups, { seed: SEED, epoch: 1 })
    : shuffleSamples({ sampleCount: samples.length, seed: SEED, epoch: 1 })
  const { groups } = listed
  return {
    socketPath: server.socketPath,
    samples,
    order: [...order],
    groups,
    counters: () => engine.source.counters(),
  }
}

/** Returns ids and bytes of each global batch that `world` ranks get from `step` on. */
async function readEpoch(socketPath: string, { world, step }: { world: number; step: number }) {
  const steps = new Map<number, { id: number; data: Buffer }[][]>()
  const readRank = async (rank: number) => {
    const client = await openTestFeedClient(socketPath, { rank, world, batch: GLOBAL_BATCH / world })
    try {
      for await (const batch of client.read({ epoch: 1, step })) {
        const ranks = steps.get(batch.step) ?? []
        steps.set(batch.step, ranks)
        ranks[rank] = batch.ids.map((id, i) => ({ id, data: batch.data[i]! }))
      }
    } finally {
      client.close()
    }
  }
  await Promise.all(Array.from({ length: world }, (_, rank) => readRank(rank)))
  return [...steps].sort(([a], [b]) => a - b).map(([, ranks]) => ranks.flat())
}

const PACKED = ['shards', 'jsonl', 'csv', 'tsv', 'mds', 'litdata']

for (const format of [...Object.keys(WRITERS), ...PACKED.map((kind) => `${kind}, mapped`)]) {
  test(`samples of ${format} come in the one order, with their bytes, for any ranks, from any step on`, async (context) => {
    for (const { world, step } of [
      { world: 1, step: 0 },
      { world: 2, step: 0 },
      { world: 4, step: 2 },
      { world: 1, step: 3 },
    ]) {
      const { socketPath, samples, order, groups, counters } = await serve(context, format, 200_000)
      const found = (await readEpoch(socketPath, { world, step })).flat()
      assert.deepEqual(
        found.map(({ id }) => id),
        order.slice(step * GLOBAL_BATCH),
        `${world} ranks from step ${step}`,
      )
      for (const { id, data } of found) assert.ok(data.equals(samples[id]!), `sample ${id}`)
      // Reading runs ahead into the following epochs, so their groups are read, too.
      if (groups)
        assert.ok(counters().row_groups_read! <= 3 * groups.ends.length, 'groups are read, not rows')
    }
  })
}
