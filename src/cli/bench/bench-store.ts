import type { Cache } from '../../cache/cache.js'
import { median } from '../../exchange/plan/fit-link.js'
import { atEnd } from '../../failure/closers.js'
import type { Dataset } from '../../model/dataset.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../../model/stall-timeout.js'
import type { Fetcher, ListedObject, Source } from '../../sources/source.js'
import type { BenchLimits } from './bench-disk.js'
import type { Figure } from './figure.js'

const CONNECTIONS = 16
/** As much as dsc requests at once. */
const PIECE_BYTES = 8 * 1024 * 1024
const OBJECTS = 256

/** Reads objects of a dataset from its source for a while and keeps none; obeys the node's bandwidth limit. */
export async function benchStore(
  cache: Cache,
  dataset: Dataset,
  limits: BenchLimits,
): Promise<readonly Figure[]> {
  const source = await cache.openSource(dataset)
  await using _ = atEnd(() => source.close())
  const objects = await listSome(source, limits.signal)
  if (objects.length === 0) return []
  const fetcher = await source.openFetcher({ connections: CONNECTIONS })
  await using _fetcher = atEnd(() => fetcher.close())
  return await readSome(fetcher, objects, { ...limits, cache })
}

/** The largest of the first objects, which say most about the rate. */
async function listSome(source: Source, signal: AbortSignal): Promise<readonly ListedObject[]> {
  for await (const page of source.list({ signal, isSequential: true })) {
    const filled = page.filter(({ sizeBytes }) => sizeBytes > 0)
    if (filled.length > 0) return filled.toSorted((a, b) => b.sizeBytes - a.sizeBytes).slice(0, OBJECTS)
  }
  return []
}

async function readSome(
  fetcher: Fetcher,
  objects: readonly ListedObject[],
  { cache, limitMs, signal }: BenchLimits & { readonly cache: Cache },
): Promise<readonly Figure[]> {
  const limit = cache.nodeBudget?.bandwidthBytesPerSecond ?? Number.POSITIVE_INFINITY
  const startMs = performance.now()
  const firstBytesMs: number[] = []
  const waiting = objects.values()
  let received = 0
  const readOnce = async (object: ListedObject) => {
    const askedMs = performance.now()
    let isFirst = true
    await fetcher.fetch({
      key: object.key,
      etag: object.etag,
      versionId: object.versionId,
      checksum: object.checksum,
      sizeBytes: object.sizeBytes,
      offset: 0,
      length: Math.min(object.sizeBytes, PIECE_BYTES),
      stallTimeoutMs: cache.transfer.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
      signal,
      sink: (chunk) => {
        if (isFirst) firstBytesMs.push(performance.now() - askedMs)
        isFirst = false
        received += chunk.length
        return Math.max(0, (1000 * received) / limit - (performance.now() - startMs))
      },
    })
  }
  const connections = Math.min(CONNECTIONS, cache.nodeBudget?.maxRequests ?? CONNECTIONS)
  const readers = Array.from({ length: connections }, async () => {
    for (const object of waiting) {
      await readOnce(object)
      if (performance.now() - startMs > limitMs) return
    }
  })
  await Promise.all(readers)
  const seconds = (performance.now() - startMs) / 1000
  return [
    { part: 'store', what: 'sends', value: received / seconds },
    { part: 'store', what: 'sends its first byte', value: median(firstBytesMs) },
  ]
}
