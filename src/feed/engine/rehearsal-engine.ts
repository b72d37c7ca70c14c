import type { SampleSource } from '../../samples/sample-source.js'
import type { ArenaFile } from '../arena/arena-file.js'
import type { ArenaBudgetOptions } from '../plan/arena-budget.js'
import { chooseOrderKind } from '../plan/order.js'
import type { BatchStream } from '../stream/batch-stream.js'
import { openReaderPool, type ReaderPool } from '../threads/reader-pool.js'
import { FeedEngine } from './feed-engine.js'

/** A feed without bytes and its streams, one per rank of `plan`. These ranks count as the whole job. */
interface RehearsalEngine {
  readonly streams: readonly BatchStream[]
  /** Whether a thread is making an order. */
  readonly isOrdering: () => boolean
  close(): Promise<void>
}

/** Longer than any simulation; an eighth of it is still a valid timer delay. */
const NEVER_MS = 1e10

/** Opens a feed that decides like a real one but moves nothing. `source` writes no bytes, either. */
export function openRehearsalEngine(
  source: SampleSource,
  { memoryBytes, k, requestBytes, ranks }: ArenaBudgetOptions,
  nowMs: () => number,
): RehearsalEngine {
  let ordering = 0
  const pool = openReaderPool({ arenaFd: -1 }, 1)
  const withoutCopies: ReaderPool = {
    run: async (job) => {
      if (job.kind === 'copy') return { kind: 'copy' } // there are no bytes to copy
      ordering++
      try {
        return await pool.run(job)
      } finally {
        ordering--
      }
    },
    close: () => pool.close(),
  }
  const engine = new FeedEngine({
    source,
    pool: withoutCopies,
    arenaFile: emptyArena(memoryBytes),
    seed: 0,
    orderKind: chooseOrderKind(source.table.count),
    k,
    requestBytes,
    eviction: 'lazy',
    isCarrying: true,
    isConformance: false,
    nowMs,
    roomTimeoutMs: NEVER_MS,
  })
  const streams = ranks.map(({ batchSize, leases }, rank) =>
    engine.openStream({ batchSize, world: ranks.length, rank, replicate: 1, last: 'drop' }, leases),
  )
  return { streams, isOrdering: () => ordering > 0, close: () => engine.close() }
}

function emptyArena(bytes: number): ArenaFile {
  const nothing = () => {}
  return { fd: -1, bytes, nonce: '', path: '', move: nothing, read: nothing, poison: nothing, close: nothing }
}
