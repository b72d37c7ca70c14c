import { type MemorySource, openMemorySource } from './memory-source.js'

/** A source in memory that can delay its answers. */
export interface HeldSource extends MemorySource {
  /** Blocks every fetch of the object until the returned function is called. */
  hold(key: string): () => void
  /** Blocks listings from now on, until the returned function is called. */
  holdListing(): () => void
  /** How many times an object was requested. */
  fetches(key: string): number
  listings(): number
  /** Releases everything blocked. */
  release(): void
}

export function openHeldSource(objects: Readonly<Record<string, string | Uint8Array>>): HeldSource {
  const source = openMemorySource(objects)
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const asked: string[] = []
  const hold = (name: string) => {
    const gate = Promise.withResolvers<void>()
    gates.set(name, gate)
    return gate.resolve
  }
  return {
    ...source,
    hold: (key) => hold(`object ${key}`),
    holdListing: () => hold('listing'),
    fetches: (key) => asked.filter((name) => name === `object ${key}`).length,
    listings: () => asked.filter((name) => name === 'listing').length,
    release() {
      for (const gate of gates.values()) gate.resolve()
    },
    async *list(options) {
      asked.push('listing')
      await gates.get('listing')?.promise
      yield* source.list(options)
    },
    async openFetcher(options) {
      const fetcher = await source.openFetcher(options)
      return {
        ...fetcher,
        async fetch(request) {
          asked.push(`object ${request.key}`)
          await Promise.race([gates.get(`object ${request.key}`)?.promise, ended(request.signal)])
          return fetcher.fetch(request)
        },
      }
    },
  }
}

function ended(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    signal?.addEventListener('abort', () => resolve())
  })
}
