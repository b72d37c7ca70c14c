import { setTimeout as sleep } from 'node:timers/promises'
import type { Surroundings } from '../cache/surroundings.js'
import type { ColdHeaders } from '../feed/plan/cold-start.js'
import type { Dataset } from '../model/dataset.js'
import { HEADERS_AT_ONCE, listArrivingShards } from './list-arriving-shards.js'
import { openRangeReader, type ReadObject } from './open-range-reader.js'

/** Warm-up, in ms: connections open and code compiles, which a feed goes through as well. */
const WARM_UP_MS = 400
const MEASURED_MS = 400
/** Headers per ms to assume if the source delivered none: the resulting time shows that nothing came. */
const MIN_PER_MS = 0.001

/**
 * Measures how fast headers of these shards come, requested as a feed would for at most 0.8 s: the speed of this
 * processor, the source and the link between them, without a download beside it.
 */
export async function measureHeaders(
  context: Surroundings,
  dataset: Dataset,
  shards: readonly ReadObject[],
): Promise<Omit<ColdHeaders, 'count'>> {
  const stop = new AbortController()
  const signal = AbortSignal.any([context.signal, stop.signal])
  const source = await context.openSource(dataset)
  const reader = await openRangeReader(source, { connections: HEADERS_AT_ONCE, signal })
  let answered = 0
  const listing = listArrivingShards(
    {
      sizes: shards.map(({ sizeBytes }) => sizeBytes),
      pathOf: () => '',
      isHere: () => false,
      waitFor: (_, until) =>
        new Promise((resolve) => until.addEventListener('abort', () => resolve(false), { once: true })),
      async readRange(file, offset, length) {
        const bytes = await reader.read(shards[file]!, offset, length)
        answered += 1
        return bytes
      },
    },
    { onProgress: () => {}, signal },
  ).catch(() => undefined) // stopped, or refused by the source, which a feed would report
  try {
    const beganMs = performance.now()
    const isAllKnown = await Promise.race([listing.then(() => true), sleep(WARM_UP_MS, false)])
    const warmUp = { ms: performance.now() - beganMs, count: answered }
    if (isAllKnown) return { perMs: Math.max(MIN_PER_MS, answered / warmUp.ms), warmUp }
    await Promise.race([listing, sleep(MEASURED_MS)])
    const measuredMs = performance.now() - beganMs - warmUp.ms
    return { perMs: Math.max(MIN_PER_MS, (answered - warmUp.count) / measuredMs), warmUp }
  } finally {
    stop.abort()
    await listing
    await reader.close()
    await source.close()
  }
}
