import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import type { ReaderPool } from '../threads/reader-pool.js'
import { LocalSource } from './local-source.js'

test('a request that fails in one part ends when every part has: threads may still write to the arena', async (context) => {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'in'), 4, () => 700_000)
  const { table, root } = await indexSamples(join(folder, 'in'), { cacheFolder: join(folder, 'cache') })
  const ended: string[] = []
  const pool: ReaderPool = {
    async run(job) {
      if (job.kind !== 'read') throw new Error('only reads are expected')
      if (job.samples[0] === 0) throw new Error('the first part fails')
      await new Promise((resolve) => setTimeout(resolve, 20))
      ended.push(`part of ${job.samples.join()}`)
      return { kind: 'read', statuses: new Uint8Array(job.samples.length) }
    },
    close: async () => {},
  }
  const statuses: string[] = []
  const request = {
    node: 0,
    samples: Uint32Array.of(0, 1, 2, 3),
    offsets: new Float64Array(4),
    isMiss: false,
  }
  const read = new LocalSource(root, table, pool).read(request, (i, status) => {
    statuses[i] = status
  })
  await assert.rejects(read, /the first part fails/)
  assert.deepEqual(ended, ['part of 2,3'])
  assert.deepEqual(statuses.slice(2), ['ok', 'ok'])
})
