import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeShardObjects } from '../testing/shard-objects.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { listArrivingShards } from './list-arriving-shards.js'

const SHARDS = 3
const IN_SHARD = 4
/** Each member is large, so that the headers of a shard are a small part of it. */
const MEMBER_BYTES = 128 * 1024

/** Shards in a folder: those of `here` have arrived, and of those of `coming` each arrives when it is waited for. */
async function shardsOf(t: TestContext, how: { here?: number[]; coming?: number[]; source?: 'refuses' }) {
  const folder = await temporaryDirectory(t)
  const objects = makeShardObjects({ shards: SHARDS, inShard: IN_SHARD, lengthOf: () => MEMBER_BYTES })
  const bodies = Array.from({ length: SHARDS }, (_, file) => objects.get(`flowers/train/${file}.tar`)!)
  const pathOf = (file: number) => join(folder, String(file))
  for (const [file, body] of bodies.entries()) writeFileSync(pathOf(file), body)
  const asked = new Set<number>()
  const progress: number[] = []
  const listing = listArrivingShards(
    {
      sizes: bodies.map(({ length }) => length),
      pathOf,
      isHere: (file) => how.here?.includes(file) ?? false,
      waitFor: (file, signal) =>
        how.here?.includes(file) || how.coming?.includes(file)
          ? Promise.resolve(true)
          : new Promise((resolve) => signal.addEventListener('abort', () => resolve(false), { once: true })),
      async readRange(file, offset, length) {
        asked.add(file)
        if (how.source === 'refuses') throw new Error('the source refuses')
        return bodies[file]!.subarray(offset, offset + length)
      },
    },
    { signal: t.signal, onProgress: (done) => progress.push(done) },
  )
  return { listing, asked, progress }
}

test('shards that do not come are listed from the headers that their source gives', async (t) => {
  const { listing, asked, progress } = await shardsOf(t, {})
  const found = await listing
  assert.deepEqual(
    found?.map(({ members }) => [...members].length),
    Array(SHARDS).fill(IN_SHARD),
  )
  assert.deepEqual([...asked].sort(), [0, 1, 2])
  assert.deepEqual(progress, [1, 2, 3])
})

test('a shard that is here is read here, and its source is not asked for it', async (t) => {
  const { listing, asked } = await shardsOf(t, { here: [0, 2] })
  assert.equal((await listing)?.length, SHARDS)
  assert.deepEqual([...asked], [1])
})

test('where the source refuses, the list comes with the shards', async (t) => {
  const { listing } = await shardsOf(t, { coming: [0, 1, 2], source: 'refuses' })
  assert.deepEqual(
    (await listing)?.map(({ members }) => [...members].length),
    Array(SHARDS).fill(IN_SHARD),
  )
})
