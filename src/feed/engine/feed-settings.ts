import type { EvictionMode } from '../arena/arena-space.js'
import type { MixPart } from '../plan/mix.js'
import type { OrderKind } from '../plan/order.js'

/** All settings of a feed except where its samples come from. */
export interface FeedSettings {
  /** 0 to 2^53 − 1. Default 0. */
  readonly seed?: number
  /** The first epoch to read. Its order is ready before the feed is. Default 0. */
  readonly firstEpoch?: number | undefined
  /** The default depends on the number of samples. */
  readonly order?: OrderKind | undefined
  /** The parts of the samples and how often an epoch visits them. Default: each sample once. */
  readonly mix?: readonly MixPart[] | undefined
  /** Size of the arena, in bytes. Default 256 MiB, or as much of that as its file system has. */
  readonly memoryBytes?: number | undefined
  /** Samples per request. Default 'auto'. */
  readonly k?: number | 'auto' | undefined
  /** Bytes per request that `auto` aims for. Default: from the measured cost of requests, 4 MiB until measured. */
  readonly requestBytes?: number | undefined
  readonly eviction?: EvictionMode | undefined
  /** Lets clients map files of packed samples that lie here and that nobody may write to. Default true. */
  readonly isMapping?: boolean | undefined
  /** Whether to keep samples for the next epoch. Default true. */
  readonly isCarrying?: boolean | undefined
  readonly isConformance?: boolean | undefined
  /** Folder of the arena, a memory file system. Default /dev/shm. */
  readonly arenaFolder?: string | undefined
  /** Number of reader threads. Default: one per core, 4 at most. */
  readonly threads?: number | undefined
  /** How long a sample waits for clients to make room before it fails. Default 10 s. */
  readonly roomTimeoutMs?: number | undefined
}
