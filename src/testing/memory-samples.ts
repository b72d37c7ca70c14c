import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeFully } from '../feed/arena/write-fully.js'
import type { FeedEngine } from '../feed/engine/feed-engine.js'
import type { FeedSettings } from '../feed/engine/feed-settings.js'
import { openFeedEngine } from '../feed/engine/open-feed-engine.js'
import { createRandomStream } from '../feed/plan/random.js'
import type { SampleSupply } from '../feed/sources/sample-supply.js'
import { indexSamples, type SampleFolder } from '../samples/index-samples.js'
import type { SampleLayout } from '../samples/plan/sample-placement.js'
import type { SampleSource } from '../samples/sample-source.js'
import type { SampleTable } from '../samples/sample-table.js'
import { sampleBytes, writeSamples } from './sample-folder.js'

/** Writes and lists `count` samples under `folder`. */
export function makeSampleFolder(
  folder: string,
  count: number,
  lengthOf: (id: number) => number,
): Promise<SampleFolder> {
  const root = join(folder, 'samples')
  mkdirSync(root, { recursive: true })
  writeSamples(root, count, lengthOf)
  return indexSamples(root, { cacheFolder: join(folder, 'cache') })
}

interface MemoryNodes {
  readonly nodeCount: number
  readonly layout: SampleLayout
  readonly slownessMs: number
  readonly seed: number
}

/** A feed over in-process storage nodes. */
export function openMemoryEngine(table: SampleTable, settings: FeedSettings, nodes: MemoryNodes): FeedEngine {
  const makeSource: SampleSupply['makeSource'] = ({ arenaFile }) =>
    createMemorySource({ table, arenaFd: arenaFile.fd, ...nodes })
  return openFeedEngine({ table, folder: undefined, makeSource }, settings)
}

/**
 * `nodeCount` in-process storage nodes that answer in their own order: the samples of a request in reverse, after a
 * pause of up to `slownessMs` determined by `seed`.
 */
function createMemorySource(
  options: MemoryNodes & { readonly table: SampleTable; readonly arenaFd: number },
): SampleSource {
  const { table, arenaFd, nodeCount, layout, slownessMs } = options
  const random = createRandomStream(options.seed, 0)
  return {
    table,
    layout,
    origin: 'peer',
    nodeCount,
    nodeName: (node) => `node ${node}`,
    async read({ node, samples, offsets }, onSample) {
      if (slownessMs > 0) await sleep(random.nextBelow(slownessMs + 1))
      for (let i = samples.length - 1; i >= 0; i--) {
        const sample = samples[i]!
        const isHere = layout === 'full' || sample % nodeCount === node
        if (isHere) writeFully(arenaFd, sampleBytes(sample, table.lengths[sample]!), offsets[i]!)
        onSample(i, isHere ? 'ok' : 'missing')
      }
    },
    close: async () => {},
  }
}
