import { open } from 'node:fs/promises'
import type { ShardMembers } from '../samples/formats/index-shards.js'
import type { ReadRange } from '../samples/range-window.js'
import { readShardMembers } from '../samples/read-shard-members.js'

/**
 * Headers requested at once. A source that answers in 20 ms delivers 50 a second per connection. The list of 64 shards
 * of 327 members took 26 s with 16 connections and 3 s with 256, the limit of a client's and a source's processors.
 */
export const HEADERS_AT_ONCE = 512
/** Average member size below which headers are too large a part of a shard to request, in bytes. */
export const MIN_MEMBER_BYTES = 32 * 1024
/** Number of shards whose headers are requested at once, so that the first are known soon. */
const SHARDS_AT_ONCE = 64
/** Size below which a whole shard arrives as soon as its headers would, in bytes. */
export const MIN_ASKED_BYTES = 256 * 1024

/** Shards that are being downloaded to this machine; their numbers are those of their list. */
interface ArrivingShards {
  readonly sizes: readonly number[]
  /** The path of a shard once it is here. */
  pathOf(file: number): string
  isHere(file: number): boolean
  /** Waits until a shard is here. False: it will not come. */
  waitFor(file: number, signal: AbortSignal): Promise<boolean>
  /** Reads a range of a shard from its source. */
  readRange(file: number, offset: number, length: number): Promise<Uint8Array>
}

/**
 * Lists the members of all shards as early as possible; undefined if the remaining shards will not come. Stagers fetch
 * from the front of the list, so finished shards are read there, while headers of those at the back are requested from
 * the source, unless members are so small that headers make up most of a shard. The two meet where the list is complete
 * soonest, for any speed of source and link.
 */
export async function listArrivingShards(
  shards: ArrivingShards,
  options: { readonly onProgress: (done: number, total: number) => void; readonly signal: AbortSignal },
): Promise<readonly ShardMembers[] | undefined> {
  const listing = new ShardListing(shards, options.onProgress)
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const asking = Array.from({ length: Math.min(SHARDS_AT_ONCE, shards.sizes.length) }, () =>
    listing.askFromBack(signal),
  )
  try {
    return await listing.takeFromFront(signal)
  } finally {
    stop.abort()
    await Promise.all(asking)
  }
}

class ShardListing {
  readonly #shards: ArrivingShards
  readonly #onProgress: (done: number, total: number) => void
  readonly #found: PromiseWithResolvers<ShardMembers>[]
  readonly #isKnown: boolean[]
  readonly #stretches: number
  #known = 0
  #back: number

  constructor(shards: ArrivingShards, onProgress: (done: number, total: number) => void) {
    this.#shards = shards
    this.#onProgress = onProgress
    this.#found = shards.sizes.map(() => Promise.withResolvers<ShardMembers>())
    this.#isKnown = shards.sizes.map(() => false)
    this.#back = shards.sizes.length
    this.#stretches = Math.floor(HEADERS_AT_ONCE / Math.max(1, Math.min(SHARDS_AT_ONCE, shards.sizes.length)))
  }

  /** Takes each shard when it is here, or when its headers are. */
  async takeFromFront(signal: AbortSignal): Promise<readonly ShardMembers[] | undefined> {
    for (const [file, { promise }] of this.#found.entries()) {
      if (this.#isKnown[file]) continue
      const enough = new AbortController()
      const isHere = await Promise.race([
        this.#shards.waitFor(file, AbortSignal.any([signal, enough.signal])),
        promise.then(() => false),
      ])
      enough.abort()
      signal.throwIfAborted()
      if (this.#isKnown[file]) continue
      if (!isHere) return undefined
      this.#note(file, await this.#readHere(file))
    }
    return Promise.all(this.#found.map(({ promise }) => promise))
  }

  /** Requests headers from the last shard backwards until all are taken. Failures wait for the whole shard. */
  async askFromBack(signal: AbortSignal): Promise<void> {
    while (this.#back > 0 && !signal.aborted) {
      this.#back -= 1
      const file = this.#back
      const sizeBytes = this.#shards.sizes[file]!
      if (sizeBytes < MIN_ASKED_BYTES || this.#isKnown[file] || this.#shards.isHere(file)) continue
      const read: ReadRange = (offset, length) => {
        signal.throwIfAborted()
        return this.#shards.readRange(file, offset, length)
      }
      try {
        const found = await readShardMembers(sizeBytes, read, { stretches: this.#stretches })
        if (found) this.#note(file, found)
      } catch {
        return // reporting a source that refuses, or is away, is up to the stager
      }
    }
  }

  async #readHere(file: number): Promise<ShardMembers> {
    await using shard = await open(this.#shards.pathOf(file))
    const read: ReadRange = async (offset, length) => {
      const { buffer, bytesRead } = await shard.read(Buffer.alloc(length), 0, length, offset)
      return buffer.subarray(0, bytesRead)
    }
    return (await readShardMembers(this.#shards.sizes[file]!, read, { maxShare: Infinity }))!
  }

  #note(file: number, members: ShardMembers): void {
    if (this.#isKnown[file]) return
    this.#isKnown[file] = true
    this.#known += 1
    this.#found[file]!.resolve(members)
    this.#onProgress(this.#known, this.#isKnown.length)
  }
}
