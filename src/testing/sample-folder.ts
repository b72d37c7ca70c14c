import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import type { FeedEngine } from '../feed/engine/feed-engine.js'
import type { LeasedBatch } from '../feed/stream/leased-batch.js'
import { type IndexOptions, indexSamples } from '../samples/index-samples.js'

/** A folder for one test, removed at its end. */
export function makeTestFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-feed-test-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Returns the names of the samples under `root`. */
export async function namesOf(context: TestContext, root: string, options: Partial<IndexOptions> = {}) {
  const listed = await indexSamples(root, { cacheFolder: makeTestFolder(context), ...options })
  const names = Array.from({ length: listed.table.count }, (_, sample) => listed.table.nameOf(sample))
  return { ...listed, names }
}

/** The bytes of sample `id`, `length` of them: each encodes the id and its own position. */
export function sampleBytes(id: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let i = 0; i < length; i++) bytes[i] = (id * 131 + i * 7 + (i >> 8)) & 0xff
  return bytes
}

/** Writes `count` samples named so that byte order is id order, with lengths from `lengthOf`. */
export function writeSamples(root: string, count: number, lengthOf: (id: number) => number): void {
  for (let id = 0; id < count; id++) {
    const path = join(root, `${String(id).padStart(6, '0')}.bin`)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, sampleBytes(id, lengthOf(id)))
  }
}

/** The ids of a batch, after comparing every byte of its samples with `sampleBytes`. */
export function verifiedIds(
  engine: FeedEngine,
  batch: LeasedBatch,
  lengthOf: (id: number) => number,
): number[] {
  return batch.slots.map(({ sample }, i) => {
    const bytes = Buffer.alloc(lengthOf(sample))
    engine.arena.file.read(bytes, batch.offsets[i]!)
    assert.ok(bytes.equals(sampleBytes(sample, bytes.length)), `bytes of sample ${sample}`)
    return sample
  })
}
