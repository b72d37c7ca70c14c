import { BLOCK, findLikelyHeader } from './formats/tar-header.js'
import { endOfMember, isMember, type TarMember, walkTar } from './formats/tar-members.js'
import { RangeWindow, type ReadRange, WINDOW_BYTES } from './range-window.js'

/** Members of a stretch, about: to find where one begins costs half a member or more. */
const MIN_STRETCH_MEMBERS = 32
/** Bytes that are looked through at once for a header: half a member within these limits. */
const MIN_SEARCH_BYTES = 16 * 1024
const MAX_SEARCH_BYTES = 512 * 1024

/** Members after which it is judged whether headers are worth their bytes. */
export const JUDGED_MEMBERS = 8

/** What scouts know of the shard. */
interface ScoutedShard {
  readonly sizeBytes: number
  readonly read: ReadRange
  /** Bytes that are read at once for a header. */
  readonly leastBytes: number
  /** Of members that are known. */
  readonly meanBytes: number
  /** Most bytes of headers, as a share of what they describe. */
  readonly maxShare: number
}

/** A part of a shard, from `from` up to `until`. */
export interface Stretch {
  readonly from: number
  readonly until: number
}

/**
 * The stretches of a shard that are read side by side behind its first `members`, the first of which goes on where they
 * end: at most `most` of them. They begin where members would if all were as long as these on average.
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

/** The member whose first header stands at `at`, or the first behind; undefined at the end of the archive. */
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
 * Reads the headers of a stretch from the first on that it finds there. That it is one, and no bytes of a member that
 * look like one, shows when a walk from the start of the shard arrives at it.
 */
export class Scout {
  /** Ends when all that can be found was found; never rejects, for a walk that finds nothing here reads itself. */
  readonly done: Promise<void>
  readonly #members: TarMember[] = []
  readonly #stretch: Stretch
  readonly #shard: ScoutedShard
  /** The first member that the walk from the start has not passed. */
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

  /** The members from `at` on, where a header stands; none, where it found none to stand. Asked in their order. */
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

  /** Where the first header of the stretch stands; where all members are as long as the mean, at its start. */
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
