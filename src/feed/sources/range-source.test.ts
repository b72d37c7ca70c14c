import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, sampleBytes, writeSamples } from '../../testing/sample-folder.js'
import { type RangeReader, RangeSource } from './range-source.js'

async function makeShard(context: TestContext) {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'in'), 20, () => 1000)
  mkdirSync(join(folder, 'shards'))
  execFileSync('tar', [
    '-C',
    join(folder, 'in'),
    '-cf',
    join(folder, 'shards', '0.tar'),
    ...Array.from({ length: 20 }, (_, i) => `${String(i).padStart(6, '0')}.bin`),
  ])
  const { table, root } = await indexSamples(join(folder, 'shards'), { cacheFolder: join(folder, 'cache') })
  const arenaFd = openSync(join(folder, 'arena'), 'w+')
  context.after(() => closeSync(arenaFd))
  const reads: [string, number, number][] = []
  const change = { at: -1 }
  const reader: RangeReader = {
    name: 'the source',
    read: async (file, offset, length) => {
      reads.push([file, offset, length])
      if (change.at === -2) throw new Error('out of reach')
      const bytes = readFileSync(join(root, file)).subarray(offset, offset + length)
      if (change.at >= 0) bytes[change.at]! ^= 1
      return bytes
    },
    close: async () => {},
  }
  const source = new RangeSource({ table, arenaFd, reader })
  const read = async (samples: readonly number[]) => {
    const statuses: string[] = []
    await source.read(
      {
        node: 0,
        samples: Uint32Array.from(samples),
        offsets: Float64Array.from(samples, (_, i) => 2000 * i),
        isMiss: false,
      },
      (i, status) => {
        statuses[i] = status
      },
    )
    return statuses
  }
  return { read, reads, change, arenaFd }
}

test('neighbouring samples of a shard are read in one range, each to its own place', async (context) => {
  const { read, reads, arenaFd } = await makeShard(context)
  assert.deepEqual(await read([7, 3, 5]), ['ok', 'ok', 'ok'])
  assert.equal(reads.length, 1)
  for (const [i, id] of [7, 3, 5].entries()) {
    const bytes = Buffer.alloc(1000)
    readSync(arenaFd, bytes, 0, 1000, 2000 * i)
    assert.ok(bytes.equals(sampleBytes(id, 1000)))
  }
})

test('a range that differs from its checksum, or cannot be read, is a status of its samples', async (context) => {
  const { read, change } = await makeShard(context)
  change.at = 10
  assert.deepEqual(await read([3, 4]), ['corrupt', 'ok'])
  change.at = -2
  assert.deepEqual(await read([3, 4]), ['unreachable', 'unreachable'])
})
