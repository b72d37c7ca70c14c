import type { SampleTable } from '../../samples/sample-table.js'
import { type ArenaBudget, planPrefetchRoom } from '../plan/arena-budget.js'
import type { Extent } from './arena-extents.js'
import { ARENA_BASE, type ArenaFile } from './arena-file.js'
import { expectExtents, planExtentBytes } from './arena-runs.js'
import { ArenaSpace, type EvictionMode } from './arena-space.js'
import type { SampleRoom } from './sample-room.js'

/** Copying less than this costs no more than waking a thread to do it. */
const COPY_HERE_BYTES = 128 * 1024

const NOTHING_COUNTED = { movedBytes: 0, movePasses: 0, compactions: 0, evictedRuns: 0, copiedBytes: 0 }

/** Counters of an arena. */
type ArenaCounts = typeof NOTHING_COUNTED

interface SampleArenaOptions {
  readonly file: ArenaFile
  readonly table: SampleTable
  /** Copies within the arena file on another thread. */
  readonly copyAside: (copy: ArenaCopy) => Promise<unknown>
  readonly eviction: EvictionMode
  /** Whether samples are kept for the next epoch (seed 001). */
  readonly isCarrying: boolean
  readonly budget: ArenaBudget
}

/** Stretches of the arena file, and the target of each, in bytes. */
export interface ArenaCopy {
  readonly from: Float64Array
  readonly to: Float64Array
  readonly lengths: Float64Array
}

/** One sample to copy from one extent to another. */
interface ExtentCopy {
  readonly from: Extent
  readonly to: Extent
}

/** The memory of a feed: where each sample lies in its file, and how the room is divided. */
export class SampleArena implements SampleRoom {
  readonly space: ArenaSpace
  readonly file: ArenaFile
  readonly #table: SampleTable
  readonly #copyAside: (copy: ArenaCopy) => Promise<unknown>
  readonly #isCarrying: boolean
  readonly #counts = { ...NOTHING_COUNTED }
  #budget: ArenaBudget

  constructor(options: SampleArenaOptions) {
    const { file, table } = options
    this.file = file
    this.#table = table
    this.#copyAside = options.copyAside
    this.#isCarrying = options.isCarrying
    this.#budget = options.budget
    this.space = new ArenaSpace({
      totalBytes: file.bytes,
      expectedCount: expectExtents(file.bytes, table),
      eviction: options.eviction,
      move: (from, to, length) => file.move(ARENA_BASE + from, ARENA_BASE + to, length),
      observer: {
        moved: (_, bytes) => {
          this.#counts.movedBytes += bytes
          this.#counts.movePasses++
        },
        compacted: () => void this.#counts.compactions++,
        evicted: () => void this.#counts.evictedRuns++,
      },
    })
    this.share(options.budget)
  }

  get counts(): Readonly<ArenaCounts> {
    return this.#counts
  }

  get budget(): ArenaBudget {
    return this.#budget
  }

  get carryBytes(): number {
    return this.#budget.carryBytes
  }

  /** Divides the room again. */
  share(budget: ArenaBudget): void {
    this.#budget = budget
    const { bottomBytes } = budget
    this.space.setLimits({ bottomBytes, topBytes: this.file.bytes - bottomBytes })
  }

  extentBytesOf(sample: number): number {
    return planExtentBytes(this.#table.lengths[sample]!)
  }

  prefetchRoomBytes(): number {
    const { bottomBytes, carryBytes } = this.#budget
    return planPrefetchRoom({
      totalBytes: this.space.totalBytes,
      bottomBytes: this.space.bottom.liveBytes,
      topBytes: this.space.top.liveBytes,
      reserveBytes: bottomBytes,
      carryBytes: this.#isCarrying ? carryBytes : 0,
    })
  }

  /** Reserves room for one sample outside of any order; undefined without room. */
  reserve(sample: number): Extent | undefined {
    const item = { length: this.extentBytesOf(sample), sample }
    return this.space.reserveTop(item) ?? this.space.reserveBottom(item, 'missed')
  }

  /** Where an extent begins in the file, in bytes. */
  offsetOf(extent: Extent): number {
    return ARENA_BASE + this.space.offsetOf(extent)
  }

  /** Copies samples from extent to extent. */
  async copy(copies: readonly ExtentCopy[]): Promise<void> {
    const from = Float64Array.from(copies, (copy) => this.offsetOf(copy.from))
    const to = Float64Array.from(copies, (copy) => this.offsetOf(copy.to))
    const lengths = Float64Array.from(
      copies,
      (copy) => this.#table.lengths[this.space.extents.sampleOf(copy.from)]!,
    )
    const bytes = lengths.reduce((sum, length) => sum + length, 0)
    this.#counts.copiedBytes += bytes
    if (bytes > COPY_HERE_BYTES) await this.#copyAside({ from, to, lengths })
    else for (const [i, length] of lengths.entries()) this.file.move(from[i]!, to[i]!, length)
  }
}
