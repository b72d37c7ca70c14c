import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { keepHeapSmall } from '../../platform/small-heap.js'
import { indexSamples } from '../../samples/index-samples.js'
import { folderSupply } from '../sources/folder-supply.js'
import { openFeedEngine } from './open-feed-engine.js'

const SAMPLES = 600_000
const MIB = 2 ** 20

test('beside its arena a feed takes at most 64 bytes a sample and 100 MiB, however tiny samples are', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-feed-memory-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  keepHeapSmall() // as dsc feed serve does
  writeSamples(join(folder, 'samples.jsonl'))
  const listed = await indexSamples(folder, { cacheFolder: undefined })
  const engine = openFeedEngine(folderSupply(listed), { memoryBytes: 64 * MIB, threads: 2 })
  context.after(() => engine.close())
  await engine.ready()
  const shape = { batchSize: 1024, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = engine.openStream(shape, 2)
  await stream.start(0, 0)
  const { stepsPerEpoch } = stream.sequence
  for (let at = 0; at < 1.2 * stepsPerEpoch; at++) {
    stream.release(await stream.read(Math.floor(at / stepsPerEpoch), at % stepsPerEpoch))
    await setImmediate() // as between a client's requests
  }
  // Counts neither the arena, which is a file in memory, nor pages of the program, which processes share.
  const anonymousKib = Number(/RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1])
  const allowedBytes = 64 * SAMPLES + 100 * MIB
  assert.ok(anonymousKib * 1024 <= allowedBytes, `${anonymousKib >> 10} of ${allowedBytes / MIB} MiB`)
})

/** Writes lines of sixty bytes, some thousands at a time, so that its memory does not count as the feed's. */
function writeSamples(path: string): void {
  const lines = Buffer.alloc(60 * 6000, '"a sample of sixty bytes, '.padEnd(58, '.').concat('"\n'))
  for (let done = 0; done < SAMPLES; done += 6000) appendFileSync(path, lines)
}
