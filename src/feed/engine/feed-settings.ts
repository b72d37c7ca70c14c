import type { EvictionMode } from '../arena/arena-space.js'
import type { MixPart } from '../plan/mix.js'
import type { OrderKind } from '../plan/order.js'

/** Everything about a feed but where its samples come from. */
export interface FeedSettings {
  /** 0 to 2^53 − 1. Default 0. */
  readonly seed?: number
  /** The epoch that is read first, whose order is there before the feed is. Default 0. */
  readonly firstEpoch?: number | undefined
  /** Default by the number of samples. */
  readonly order?: OrderKind | undefined
  /** The parts of the samples and how often an epoch visits them. Default: each sample once. */
  readonly mix?: readonly MixPart[] | undefined
  /** Bytes of the arena. Default 256 MiB, or what of that its file system has. */
  readonly memoryBytes?: number | undefined
  /** Samples per request. Default 'auto'. */
  readonly k?: number | 'auto' | undefined
  /** Bytes per request that `auto` aims for. Default: by what requests are measured to cost, 4 MiB until they are. */
  readonly requestBytes?: number | undefined
  readonly eviction?: EvictionMode | undefined
  /** Has clients map files of packed samples that lie here and that nobody may write to. Default true. */
  readonly isMapping?: boolean | undefined
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
