import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SourceFailure } from '../failure/source-failure.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openMemorySource } from '../testing/memory-source.js'
import { openSourceReader } from './open-fallback.js'

const BODY = Buffer.from('0123456789')

/** A reader of a source that answers, or is away: then each attempt is noted in `attempts`. */
async function openReader(context: Parameters<typeof openExampleCache>[0], { isAway }: { isAway: boolean }) {
  const { cache } = await openExampleCache(context)
  const held = openMemorySource({ 'train/a.bin': BODY })
  const attempted = Promise.withResolvers<void>()
  const openSource = async () => ({
    ...held,
    openFetcher: async (options: Parameters<typeof held.openFetcher>[0]) => {
      const fetcher = await held.openFetcher(options)
      const fetch: typeof fetcher.fetch = async (request) => {
        if (!isAway) return fetcher.fetch(request)
        attempted.resolve()
        throw new SourceFailure('SOURCE_UNREACHABLE', 'nobody listens', { isTransient: true, isAway })
      }
      return { ...fetcher, fetch }
    },
  })
  const surroundings = { ...exampleSurroundings(cache, context.signal), openSource }
  const reader = await openSourceReader(surroundings, 's3://bucket/data/', 'train')
  return { reader, attempted: attempted.promise }
}

test('samples are read from the source of the dataset, below the folder of their split', async (t) => {
  const { reader } = await openReader(t, { isAway: false })
  assert.equal(Buffer.from(await reader.read('a.bin', 2, 3)).toString(), '234')
  await assert.rejects(reader.read('b.bin', 0, 1), /has no object train\/b\.bin/)
  await reader.close()
})

test('closing ends reads that wait for a store that is away', async (t) => {
  const { reader, attempted } = await openReader(t, { isAway: true })
  const reading = reader.read('a.bin', 0, 3)
  await attempted
  await Promise.all([assert.rejects(reading, { code: 'INTERRUPTED' }), reader.close()])
})
