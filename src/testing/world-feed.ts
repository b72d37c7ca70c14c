import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type Feed, type OpenFeedOptions, openFeed } from '../exports/index.js'
import { sampleBytes } from './sample-folder.js'
import type { World } from './world.js'

/** Opens a feed in this process on the cache of `world`, and closes it with the world. */
export async function openWorldFeed(world: World, options: OpenFeedOptions): Promise<Feed> {
  const cacheFolder = join(world.directory, 'tables')
  const feed = await openFeed({ ...world.ofProgram(), cacheFolder, ...options })
  world.onEnd(() => feed.close())
  return feed
}

/**
 * Reads a pass, or `steps` of it, of samples that must have the bytes of `sampleBytes`, and returns their ids. Awaits
 * `atStep` after each batch; its steps count from 1.
 */
export async function readPassOf(
  feed: Feed,
  lengthOf: (id: number) => number,
  options: { readonly steps?: number | undefined; readonly atStep?: (step: number) => unknown } = {},
): Promise<number[]> {
  const ids: number[] = []
  let step = 0
  for await (const batch of feed) {
    for (const { id, data } of batch) {
      assert.ok(data.equals(sampleBytes(id, lengthOf(id))), `bytes of sample ${id}`)
      ids.push(id)
    }
    step += 1
    await options.atStep?.(step)
    if (step === options.steps) break
  }
  return ids
}
