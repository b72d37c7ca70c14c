import type { ShardMembers } from './formats/index-shards.js'
import { PackedMembers } from './formats/packed-members.js'
import { type ArchiveWindow, isMember, TarDamage, type TarQuestion, walkTar } from './formats/tar-members.js'

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
  const members = new PackedMembers()
  const window = new RangeWindow(sizeBytes, read)
  try {
    for (const step of walkTar(sizeBytes, window)) {
      if (isMember(step)) {
        members.add(step)
        continue
      }
      const isCostly = window.readBytes > maxShare * step.at
      if (members.count >= JUDGED_MEMBERS && isCostly && step.at < sizeBytes / 2) return undefined
      await window.cover(step)
    }
    return { members, damage: undefined }
  } catch (error) {
    if (error instanceof TarDamage) return { members, damage: error }
    throw error
  } finally {
    members.trim()
  }
}

/** The part of a shard that was read last. */
class RangeWindow implements ArchiveWindow {
  readBytes = 0
  start = 0
  bytes = Buffer.alloc(0)
  readonly #sizeBytes: number
  readonly #read: ReadRange

  constructor(sizeBytes: number, read: ReadRange) {
    this.#sizeBytes = sizeBytes
    this.#read = read
  }

  async cover({ at, length }: TarQuestion): Promise<void> {
    const end = Math.min(at + length, this.#sizeBytes)
    if (at >= this.start && end <= this.start + this.bytes.length) return
    const wanted = Math.min(Math.max(length, WINDOW_BYTES), this.#sizeBytes - at)
    this.bytes = wanted > 0 ? Buffer.from(await this.#read(at, wanted)) : Buffer.alloc(0)
    this.start = at
    this.readBytes += Math.max(0, wanted)
  }
}
