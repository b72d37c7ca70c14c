import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SourceFailure } from '../failure/source-failure.js'
import type { Fetcher, Source } from '../sources/source.js'
import { openMemorySource } from '../testing/memory-source.js'
import { openRangeReader } from './open-range-reader.js'

const BODY = Buffer.from('0123456789')
const OBJECT = { key: 'digits', etag: null, versionId: null, sizeBytes: BODY.length }

/** A source whose fetcher fails `failures` times before it answers, and counts how often it is closed. */
function openFailing(failures: number, isTransient: boolean) {
  const seen = { fetches: 0, closes: 0, connections: 0 }
  const held = openMemorySource({ digits: BODY })
  const openFetcher: Source['openFetcher'] = async (options) => {
    seen.connections = options.connections
    const fetcher = await held.openFetcher(options)
    const fetch: Fetcher['fetch'] = async (request) => {
      seen.fetches += 1
      // It breaks off midway: the next attempt's writes must start where the range does.
      if (seen.fetches <= failures) request.sink(Buffer.from('xx'))
      if (seen.fetches <= failures) throw new SourceFailure('SOURCE_UNREACHABLE', 'cut', { isTransient })
      return fetcher.fetch(request)
    }
    const close = async () => {
      seen.closes += 1
    }
    return { ...fetcher, fetch, close }
  }
  return { source: { ...held, openFetcher }, seen }
}

test('ranges are read where they lie, with as many connections as were asked for', async (t) => {
  const { source, seen } = openFailing(0, false)
  const reader = await openRangeReader(source, { connections: 7, signal: t.signal })
  const ranges = await Promise.all([
    reader.read(OBJECT, 0, 3),
    reader.read(OBJECT, 8, 2),
    reader.read(OBJECT, 4, 0),
  ])
  assert.deepEqual(
    ranges.map((range) => range.toString()),
    ['012', '89', ''],
  )
  assert.equal(seen.connections, 7)
  await reader.close()
  assert.equal(seen.closes, 1)
})

test('a range that was cut is asked for again from its beginning', async (t) => {
  const { source, seen } = openFailing(1, true)
  const reader = await openRangeReader(source, { connections: 1, signal: t.signal })
  assert.equal((await reader.read(OBJECT, 2, 4)).toString(), '2345')
  assert.equal(seen.fetches, 2)
})

test('a failure that lasts is told at once', async (t) => {
  const { source, seen } = openFailing(9, false)
  const reader = await openRangeReader(source, { connections: 1, signal: t.signal })
  await assert.rejects(reader.read(OBJECT, 0, 2), { code: 'SOURCE_UNREACHABLE' })
  assert.equal(seen.fetches, 1)
})

test('the signal of the caller closes the connections', async () => {
  const { source, seen } = openFailing(0, false)
  const caller = new AbortController()
  await openRangeReader(source, { connections: 1, signal: caller.signal })
  assert.equal(seen.closes, 0)
  caller.abort()
  assert.equal(seen.closes, 1)
})
