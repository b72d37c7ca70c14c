import type { ShardMembers } from './formats/index-shards.js'
import { PackedMembers } from './formats/packed-members.js'
import { endOfMember, TarDamage, type TarMember } from './formats/tar-members.js'
import { RangeWindow, type ReadRange, WINDOW_BYTES } from './range-window.js'
import { JUDGED_MEMBERS, planStretches, readMember, Scout, type Stretch } from './scout-shard.js'

/** Maximum share of a shard to read for its headers: beyond it, most of the shard is read anyway. */
const MAX_SHARE = 1 / 16
/** Size of a header alone. */
const HEADER_BYTES = 512

interface ReadOptions {
  /** Share of 0 to 1, default a sixteenth. */
  readonly maxShare?: number
  /** Maximum number of stretches of the shard to read side by side. Default 1. */
  readonly stretches?: number
}

/**
 * Reads the members of a shard, which may lie elsewhere, from its headers alone. Undefined if `maxShare` of it is not
 * enough, because its members are small. Each header gives the position of the next, so questions wait for each other.
 * If questions take long, stretches of the shard are scanned side by side, each from a header found in it. A stretch
 * counts if the walk from the start arrives at that header.
 */
export async function readShardMembers(
  sizeBytes: number,
  read: ReadRange,
  options: ReadOptions = {},
): Promise<ShardMembers | undefined> {
  const walk = new ShardWalk(sizeBytes, read, options)
  try {
    return (await walk.run()) ? { members: walk.members, damage: undefined } : undefined
  } catch (error) {
    if (error instanceof TarDamage) return { members: walk.members, damage: error }
    throw error
  } finally {
    await walk.end()
    walk.members.trim()
  }
}

/** Reads the first members of a shard in sequence, at most `most`; fewer if it ends or is damaged. */
export async function readFirstMembers(
  sizeBytes: number,
  read: ReadRange,
  most: number,
): Promise<readonly TarMember[]> {
  const window = new RangeWindow(sizeBytes, read)
  const members: TarMember[] = []
  try {
    for (let at = 0; members.length < most; at = endOfMember(members.at(-1)!)) {
      const member = await readMember(at, sizeBytes, window)
      if (member === undefined) break
      members.push(member)
    }
  } catch (error) {
    if (!(error instanceof TarDamage)) throw error
  }
  return members
}

/** The walk from the start of a shard, and the scouts that look ahead of it. */
class ShardWalk {
  readonly members = new PackedMembers()
  readonly #sizeBytes: number
  readonly #read: ReadRange
  readonly #maxShare: number
  readonly #stretches: number
  #window: RangeWindow
  /** Position of the next header. */
  #at = 0
  readonly #judged: TarMember[] = []
  readonly #scouts: Scout[] = []
  /** Stretches that the walk has not passed, in order. */
  readonly #ahead: (Stretch & { readonly scout: Scout })[] = []

  constructor(sizeBytes: number, read: ReadRange, { maxShare = MAX_SHARE, stretches = 1 }: ReadOptions) {
    this.#sizeBytes = sizeBytes
    this.#read = read
    this.#maxShare = maxShare
    this.#stretches = stretches
    this.#window = new RangeWindow(sizeBytes, read)
  }

  /** Walks to the end. Resolves to false if that would cost more than it is worth. */
  async run(): Promise<boolean> {
    for (;;) {
      if (this.members.count === JUDGED_MEMBERS) this.#divide()
      if (this.#isCostly()) return false
      const known = await this.#lookAhead()
      const found = known.length > 0 ? known : [await readMember(this.#at, this.#sizeBytes, this.#window)]
      for (const member of found) {
        if (member === undefined) return true
        this.members.add(member)
        if (this.#judged.length < JUDGED_MEMBERS) this.#judged.push(member)
        this.#at = endOfMember(member)
      }
    }
  }

  async end(): Promise<void> {
    for (const scout of this.#scouts) scout.stop()
    await Promise.all(this.#scouts.map(({ done }) => done))
  }

  #isCostly(): boolean {
    const isJudged = this.members.count >= JUDGED_MEMBERS && this.#at < this.#sizeBytes / 2
    return isJudged && this.#window.readBytes > this.#maxShare * this.#at
  }

  /** Sends scouts ahead, if the known members show that it pays. */
  #divide(): void {
    if (this.#isCostly()) return
    const judged = this.#judged
    const isPlain = judged.every(
      ({ headerAt, dataAt, length }) => dataAt - headerAt === HEADER_BYTES && length > WINDOW_BYTES,
    )
    const leastBytes = isPlain ? HEADER_BYTES : WINDOW_BYTES
    const [sizeBytes, read, maxShare] = [this.#sizeBytes, this.#read, this.#maxShare]
    this.#window = new RangeWindow(sizeBytes, read, leastBytes)
    const shard = { sizeBytes, read, maxShare, leastBytes, meanBytes: this.#at / judged.length }
    const [, ...ahead] = planStretches(judged, sizeBytes, this.#stretches)
    for (const stretch of ahead) this.#ahead.push({ ...stretch, scout: new Scout(stretch, shard) })
    this.#scouts.push(...this.#ahead.map(({ scout }) => scout))
  }

  /** Returns the members that a scout has found from here on. */
  async #lookAhead(): Promise<readonly TarMember[]> {
    while (this.#ahead.length > 0 && this.#at >= this.#ahead[0]!.until) this.#ahead.shift()!.scout.stop()
    const [next] = this.#ahead
    if (next === undefined || this.#at < next.from) return []
    await next.scout.done
    return next.scout.membersFrom(this.#at)
  }
}
