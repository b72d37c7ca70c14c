import { existsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { type ArenaFile, openArenaFile } from './arena-file.js'
import { createFeeder, type Feeder } from './feeder.js'
import type { EvictionMode } from './plan/arena-plan.js'
import type { FeedState } from './plan/feed-state.js'
import { countMixed, type MixPart } from './plan/mix.js'
import { chooseOrderKind, type OrderKind } from './plan/order.js'
import { openReaderPool, type ReaderPool } from './reader-pool.js'
import type { SampleFolder } from './samples/index-samples.js'
import type { SampleTable } from './samples/sample-table.js'
import { createLocalSource } from './sources/local-source.js'
import type { SampleSource } from './sources/sample-source.js'

/** Everything about a feed but where its samples come from. */
export interface FeedSettings {
  /** 0 to 2^53 − 1. Default 0. */
  readonly seed?: number
  /** Default by the number of samples. */
  readonly order?: OrderKind | undefined
  /** The parts of the samples and how often an epoch visits them. Default: each sample once. */
  readonly mix?: readonly MixPart[] | undefined
  /** Bytes of the arena. Default 256 MiB, or half of what its file system has free when that is less. */
  readonly memoryBytes?: number | undefined
  /** Samples per request. Default 'auto'. */
  readonly k?: number | 'auto' | undefined
  /** Bytes per request that `auto` aims for. Default: by what requests are measured to cost, 4 MiB until they are. */
  readonly requestBytes?: number | undefined
  readonly eviction?: EvictionMode | undefined
  /** Keeps samples for the next epoch. Default true. */
  readonly isCarrying?: boolean | undefined
  readonly isConformance?: boolean | undefined
  /** Folder of the arena, a memory file system. Default /dev/shm. */
  readonly arenaFolder?: string | undefined
  /** Threads that read. Default: one per core, 4 at most. */
  readonly threads?: number | undefined
  /** A sample for which clients leave no room fails after this long. Default 10 s. */
  readonly roomTimeoutMs?: number | undefined
}

export const DEFAULT_MEMORY_BYTES = 256 * 2 ** 20

/** A feed without clients: its arena, and the source that a maker builds with its threads. */
export interface OpenedFeeder {
  readonly feeder: Feeder
  readonly arenaFile: ArenaFile
  readonly table: SampleTable
  readonly seed: number
  readonly orderKind: OrderKind
  readonly mix: FeedState['mix']
  close(): Promise<void>
}

/** Opens a feed over a folder of this machine. */
export function openLocalFeeder(
  folder: Pick<SampleFolder, 'root' | 'table'>,
  settings: FeedSettings,
): OpenedFeeder {
  const { root, table } = folder
  return openFeeder(table, settings, { root, tableBytes: table.bytes }, ({ pool }) =>
    createLocalSource(root, table, pool),
  )
}

/** Opens a feed over whatever `makeSource` makes. */
export function openFeeder(
  table: SampleTable,
  settings: FeedSettings,
  readerFolder: { root: string; tableBytes: Uint8Array } | undefined,
  makeSource: (parts: { pool: ReaderPool; arenaFile: ArenaFile }) => SampleSource,
): OpenedFeeder {
  const seed = settings.seed ?? 0
  const orderKind = settings.order ?? chooseOrderKind(settings.mix ? countMixed(settings.mix) : table.count)
  const arenaFolder = settings.arenaFolder ?? (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  const arenaFile = openArenaFile(arenaFolder, settings.memoryBytes ?? DEFAULT_MEMORY_BYTES)
  const threads = settings.threads ?? Math.min(4, availableParallelism())
  const pool = openReaderPool(
    { arenaFd: arenaFile.fd, ...(readerFolder && { folder: readerFolder }) },
    Math.max(1, threads),
  )
  const feeder = createFeeder({
    source: makeSource({ pool, arenaFile }),
    pool,
    arenaFile,
    seed,
    orderKind,
    mix: settings.mix,
    k: settings.k ?? 'auto',
    requestBytes: settings.requestBytes,
    eviction: settings.eviction ?? (settings.isConformance ? 'patent' : 'lazy'),
    isCarrying: settings.isCarrying ?? true,
    isConformance: settings.isConformance ?? false,
    nowMs: () => performance.now(),
    roomTimeoutMs: settings.roomTimeoutMs,
  })
  const mix = settings.mix ? Object.fromEntries(settings.mix.map(({ name, times }) => [name, times])) : null
  return { feeder, arenaFile, table, seed, orderKind, mix, close: () => feeder.close() }
}
