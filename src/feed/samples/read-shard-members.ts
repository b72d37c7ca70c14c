import type { ShardMembers } from './formats/index-shards.js'
import { isMember, TarDamage, type TarMember, type TarQuestion, walkTar } from './formats/tar-members.js'

/** Bytes that are read at once for a header: a pax header and the one that it belongs to, or those of small members. */
const WINDOW_BYTES = 2048
/** A shard of which more than this share has to be read for its headers is not worth it: most of it is on its way. */
const MAX_SHARE = 1 / 16
/** Members after which that is judged. */
const JUDGED_MEMBERS = 8

/** Reads a range of a shard, wherever it is. */
export type ReadRange = (offset: number, length: number) => Promise<Uint8Array>

/**
 * The members of a shard, by its headers alone; it may lie elsewhere. Undefined where `maxShare` (0 to 1, default a
 * sixteenth) of it is not enough: its members are small.
 */
export async function readShardMembers(
  sizeBytes: number,
  read: ReadRange,
  { maxShare = MAX_SHARE }: { readonly maxShare?: number } = {},
): Promise<ShardMembers | undefined> {
  const members: TarMember[] = []
  const walk = walkTar(sizeBytes)
  const window = new RangeWindow(sizeBytes, read)
  try {
    for (let step = walk.next(); !step.done; ) {
      if (isMember(step.value)) {
        members.push(step.value)
        step = walk.next()
        continue
      }
      const isCostly = window.readBytes > maxShare * step.value.at
      if (members.length >= JUDGED_MEMBERS && isCostly && step.value.at < sizeBytes / 2) return undefined
      step = walk.next(await window.answer(step.value))
    }
    return { members, damage: undefined }
  } catch (error) {
    if (error instanceof TarDamage) return { members, damage: error }
    throw error
  }
}

/** The part of a shard that was read last. */
class RangeWindow {
  readBytes = 0
  readonly #sizeBytes: number
  readonly #read: ReadRange
  #start = 0
  #bytes = Buffer.alloc(0)

  constructor(sizeBytes: number, read: ReadRange) {
    this.#sizeBytes = sizeBytes
    this.#read = read
  }

  async answer({ at, length }: TarQuestion): Promise<Buffer> {
    const end = Math.min(at + length, this.#sizeBytes)
    if (end <= at) return Buffer.alloc(0)
    if (at < this.#start || end > this.#start + this.#bytes.length) {
      const wanted = Math.min(Math.max(length, WINDOW_BYTES), this.#sizeBytes - at)
      this.#bytes = Buffer.from(await this.#read(at, wanted))
      this.#start = at
      this.readBytes += wanted
    }
    return this.#bytes.subarray(at - this.#start, end - this.#start)
  }
}
