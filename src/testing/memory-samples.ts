import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandomStream } from '../feed/plan/random.js'
import type { SampleLayout } from '../feed/plan/sample-placement.js'
import { indexSamples, type SampleFolder } from '../feed/samples/index-samples.js'
import type { SampleTable } from '../feed/samples/sample-table.js'
import type { SampleSource } from '../feed/sources/sample-source.js'
import { writeFully } from '../feed/write-fully.js'
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

/**
 * `nodeCount` storage nodes inside the process, whose answers come in an order of their own: after a pause of up to
 * `slownessMs` that `seed` determines, the samples of a request in reverse.
 */
export function createMemorySource(options: {
  readonly table: SampleTable
  readonly arenaFd: number
  readonly nodeCount: number
  readonly layout: SampleLayout
  readonly slownessMs: number
  readonly seed: number
}): SampleSource {
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
