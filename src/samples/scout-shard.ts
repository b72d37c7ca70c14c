import { BLOCK, findLikelyHeader } from './formats/tar-header.js'
import { endOfMember, isMember, type TarMember, walkTar } from './formats/tar-members.js'
import { RangeWindow, type ReadRange, WINDOW_BYTES } from './range-window.js'

/** Approximate minimum of members in a stretch: finding where one begins costs half a member or more. */
const MIN_STRETCH_MEMBERS = 32
/** Bytes to search at once for a header: half a member within these limits. */
const MIN_SEARCH_BYTES = 16 * 1024
const MAX_SEARCH_BYTES = 512 * 1024

/** Number of members after which to judge whether headers are worth their bytes. */
export const JUDGED_MEMBERS = 8

/** Facts about the shard for scouts. */
interface ScoutedShard {
  readonly sizeBytes: number
  readonly read: ReadRange
  /** Minimum bytes to read for a header. */
  readonly leastBytes: number
  /** Mean size of the known members, in bytes. */
  readonly meanBytes: number
  /** Maximum bytes of headers, as a share of the bytes they describe. */
  readonly maxShare: number
}

/** A part of a shard, from `from` up to `until`. */
export interface Stretch {
  readonly from: number
  readonly until: number
}

/**
 * Plans at most `most` stretches to read side by side behind a shard's first `members`; the first stretch begins where
 * these end. The others begin where members would if all had the mean length of these.
 */
export function planStretches(
  members: readonly Pick<TarMember, 'dataAt' | 'length'>[],
  sizeBytes: number,
  most: number,
): readonly Stretch[] {
  const [first, at] = [endOfMember(members[0]!), endOfMember(members.at(-1)!)]
  const pace = (at - first) / (members.length - 1)
  const left = (sizeBytes - at) / pace
  const count = Math.max(1, Math.min(most, Math.floor(left / MIN_STRETCH_MEMBERS)))
  const starts = Array.from({ length: count }, (_, i) => at + toBlocks(Math.round((i * left) / count) * pace))
  return starts.map((from, i) => ({ from, until: starts[i + 1] ?? sizeBytes }))
}

/** Reads the member with its first header at `at`, or the next one; undefined at the end of the archive. */
export async function readMember(
  at: number,
  sizeBytes: number,
  window: RangeWindow,
): Promise<TarMember | undefined> {
  for (const step of walkTar(sizeBytes, window, at)) {
    if (isMember(step)) return step
    await window.cover(step)
  }
  return undefined
}

/**
 * Reads the headers of a stretch from the first one it finds. Whether that is a real header, instead of similar bytes
 * in a member, shows when a walk from the start of the shard arrives at it.
 */
export class Scout {
  /** Resolves when the search has ended; never rejects, as a walk that finds nothing here reads for itself. */
  readonly done: Promise<void>
  readonly #members: TarMember[] = []
  readonly #stretch: Stretch
  readonly #shard: ScoutedShard
  /** Index of the first member that the walk from the start has not passed. */
  #next = 0
  #isStopped = false

  constructor(stretch: Stretch, shard: ScoutedShard) {
    this.#stretch = stretch
    this.#shard = shard
    this.done = this.#walk().catch(() => {})
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Returns the members from the header at `at` on; empty if it found none there. `at` must not decrease. */
  membersFrom(at: number): readonly TarMember[] {
    while (this.#next < this.#members.length && this.#members[this.#next]!.headerAt < at) this.#next += 1
    return this.#members[this.#next]?.headerAt === at ? this.#members.slice(this.#next) : []
  }

  async #walk(): Promise<void> {
    const { sizeBytes, read, leastBytes, maxShare } = this.#shard
    const window = new RangeWindow(sizeBytes, read, leastBytes)
    const from = await this.#search()
    for (let at = from; at !== undefined && at < this.#stretch.until && !this.#isStopped; ) {
      const isJudged = this.#members.length >= JUDGED_MEMBERS
      if (isJudged && window.readBytes > maxShare * (at - from!)) return
      const member = await readMember(at, sizeBytes, window)
      if (member) this.#members.push(member)
      at = member && endOfMember(member)
    }
  }

  /** Finds the position of the stretch's first header: its start, if all members have the mean length. */
  async #search(): Promise<number | undefined> {
    const { sizeBytes, read, meanBytes } = this.#shard
    const stepBytes = toBlocks(Math.min(Math.max(meanBytes / 2, MIN_SEARCH_BYTES), MAX_SEARCH_BYTES))
    const { from, until } = this.#stretch
    for (let at = from, length = WINDOW_BYTES; at < until && !this.#isStopped; at += length) {
      if (at > from) length = stepBytes
      const bytes = Buffer.from(await read(at, Math.min(length, sizeBytes - at)))
      const found = findLikelyHeader(bytes)
      if (found !== undefined) return at + found
    }
    return undefined
  }
}

function toBlocks(bytes: number): number {
  return Math.round(bytes / BLOCK) * BLOCK
}
