import { open } from 'node:fs/promises'
import type { ShardMembers } from '../samples/formats/index-shards.js'
import type { ReadRange } from '../samples/range-window.js'
import { readShardMembers } from '../samples/read-shard-members.js'

/**
 * Headers that are asked for at once. A store that answers after 20 ms gives 50 a second to each: one for 64 shards of
 * 327 members after 26 s with 16 of them, after 3 s with 256, which is what the processors of a client and a store do.
 */
export const HEADERS_AT_ONCE = 512
/** Members below it on average, bytes: their headers are too much of a shard. */
export const MIN_MEMBER_BYTES = 32 * 1024
/** Shards whose headers are asked for at once, so that the first are known soon. */
const SHARDS_AT_ONCE = 64
/** Smaller shards come as a whole as soon as their headers would, bytes. */
export const MIN_ASKED_BYTES = 256 * 1024

/** Shards that are coming to this machine; numbers are those of their list. */
interface ArrivingShards {
  readonly sizes: readonly number[]
  /** Where a shard lies once it is here. */
  pathOf(file: number): string
  isHere(file: number): boolean
  /** Waits until a shard is here. False: it will not come. */
  waitFor(file: number, signal: AbortSignal): Promise<boolean>
  /** Reads a range of a shard where it comes from. */
  readRange(file: number, offset: number, length: number): Promise<Uint8Array>
}

/**
 * The members of all shards, as soon as they can be known; undefined when the rest of the shards will not come. Whoever
 * stages fetches from the front of the list, so shards that have come are read there, and the headers of those at the
 * back are asked for where they come from, unless members are so small that it would be most of the shard: the two meet
 * where the list is known soonest, whatever the store and the link are like.
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

  /** Asks for headers, from the last shard on, until the shards before are here. What fails comes as a whole. */
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
        return // a store that refuses, or is away, is the concern of whoever stages
      }
    }
  }

  async #readHere(file: number): Promise<ShardMembers> {
    const shard = await open(this.#shards.pathOf(file))
    try {
      const read: ReadRange = async (offset, length) => {
        const { buffer, bytesRead } = await shard.read(Buffer.alloc(length), 0, length, offset)
        return buffer.subarray(0, bytesRead)
      }
      return (await readShardMembers(this.#shards.sizes[file]!, read, { maxShare: Infinity }))!
    } finally {
      await shard.close()
    }
  }

  #note(file: number, members: ShardMembers): void {
    if (this.#isKnown[file]) return
    this.#isKnown[file] = true
    this.#known += 1
    this.#found[file]!.resolve(members)
    this.#onProgress(this.#known, this.#isKnown.length)
  }
}
