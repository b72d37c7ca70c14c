import { createHash } from 'node:crypto'
import { SourceFailure } from '../failure/source-failure.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { Fetcher, ListedObject, Source } from '../sources/source.js'

const PAGE_OBJECTS = 1000
const FACTS: ObjectFacts = { checksums: [], uploadPartBytes: null, isEtagMd5: true }

/** A source in memory, also for keys and object counts that no server would accept in a test. */
export interface MemorySource extends Source {
  readonly objects: Map<string, Buffer>
}

/** Opens a source with `objects`; they may change while it is open. */
export function openMemorySource(objects: Readonly<Record<string, string | Uint8Array>>): MemorySource {
  const held = new Map(Object.entries(objects).map(([key, body]) => [key, Buffer.from(body)]))
  return {
    objects: held,
    url: 'memory:/',
    async *list() {
      const keys = [...held.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      for (let at = 0; at < keys.length; at += PAGE_OBJECTS)
        yield keys.slice(at, at + PAGE_OBJECTS).map((key) => describe(key, held.get(key)!))
    },
    async openFetcher() {
      return createFetcher(held)
    },
    async close() {},
  }
}

function describe(key: string, body: Buffer): ListedObject {
  const etag = createHash('md5').update(body).digest('hex')
  return { key, sizeBytes: body.length, etag, versionId: null, checksum: null, modifiedAtMs: 0 }
}

function createFetcher(held: ReadonlyMap<string, Buffer>): Fetcher {
  return {
    async fetch(request) {
      request.signal?.throwIfAborted()
      const body = held.get(request.key)
      if (!body) throw new SourceFailure('SOURCE_NOT_FOUND', `${request.key} is gone`, { isTransient: false })
      if (request.etag !== null && describe('', body).etag !== request.etag)
        throw new SourceFailure('SOURCE_CHANGED', `${request.key} changed`, { isTransient: false })
      request.onFacts?.(FACTS)
      request.signal?.throwIfAborted()
      request.sink(body.subarray(request.offset, request.offset + request.length))
    },
    inspect: async () => FACTS,
    close: async () => {},
  }
}
