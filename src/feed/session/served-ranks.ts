import { DscError } from '../../failure/dsc-error.js'
import { type TrainerTime, TrainerTimes } from '../batches/trainer-time.js'
import type { FeedEngine } from '../engine/feed-engine.js'
import { formatMetrics } from '../engine/feed-metrics.js'
import { planDepth, planKeep } from '../plan/arena-budget.js'
import type { BatchStream } from '../stream/batch-stream.js'
import type { Hello } from './hello.js'
import type { Run } from './rank-runs.js'

/** The stream of a rank's reader and the clients that read it. */
export interface ServedRank {
  readonly rank: number
  /** Identifies the shape in which it is read. */
  readonly key: string
  readonly stream: BatchStream
  run: Run | undefined
  /** Resolves when the stream is at the start of `run`. */
  opening: Promise<void>
  readonly clients: Set<object>
  /** Number of samples left out of batches. */
  skippedCount: number
}

/** The ranks of this machine that clients have asked for. */
export class ServedRanks {
  readonly #engine: FeedEngine
  readonly #ranks = new Map<string, ServedRank>() // by rank and reader
  readonly #openedAtMs = performance.now()
  readonly times = new TrainerTimes(() => performance.now())

  constructor(engine: FeedEngine) {
    this.#engine = engine
  }

  /** Number of batches that the client of `hello` may hold at once. */
  depthOf(hello: Hello): number {
    return (hello.depth ?? planDepth(this.#roomOf(hello))) + this.keepOf(hello)
  }

  /** Number of these that it keeps while it asks for others. */
  keepOf(hello: Hello): number {
    return hello.keep ?? planKeep(this.#roomOf(hello))
  }

  /** Finds or opens the rank's stream; throws if the rank is served in another shape. */
  join(hello: Hello): ServedRank {
    const { rank, reader, world, replicate, batchSize, last, assign } = hello
    const key = JSON.stringify([world, replicate, batchSize, last, assign])
    const place = `${rank}/${reader}`
    const leases = this.depthOf(hello) * hello.workers
    const held = this.#ranks.get(place)
    if (held?.key === key) {
      this.#engine.allowLeases(held.stream, leases)
      return held
    }
    if (held) this.#refuseAnotherShape(held, hello)
    this.#closeIdle(rank)
    const stream = this.#engine.openStream({ rank, world, replicate, batchSize, last, assign }, leases)
    const opened = {
      rank,
      key,
      stream,
      run: undefined,
      opening: Promise.resolve(),
      clients: new Set<object>(),
      skippedCount: 0,
    }
    this.#ranks.set(place, opened)
    return opened
  }

  /** Adds how a trainer spent its time, and for whom the streams of its rank waited in that time. */
  addTime(told: TrainerTime): void {
    const culprits = new Map<string, number>()
    let world = 1
    for (const { rank, stream } of this.#ranks.values()) {
      if (rank !== told.rank) continue
      world = Math.max(world, stream.sequence.options.world)
      for (const [culprit, ms] of stream.meter.takeCulprits())
        culprits.set(culprit, (culprits.get(culprit) ?? 0) + ms)
    }
    this.times.add(told, culprits, world)
  }

  /** The state of the feed as Prometheus text. */
  statusText(): string {
    return formatMetrics({
      engine: this.#engine,
      ranks: Array.from(this.#ranks.values(), ({ rank, stream, clients, skippedCount }) => ({
        rank,
        stream,
        clients: clients.size,
        skipped: skippedCount,
      })),
      uptimeSeconds: (performance.now() - this.#openedAtMs) / 1000,
    })
  }

  #roomOf({ batchSize, workers, world }: Hello) {
    const { table, memoryBytes } = this.#engine
    const batchBytes = (table.totalBytes / table.count) * batchSize
    return { batchBytes, memoryBytes, clients: workers * world }
  }

  #refuseAnotherShape({ rank, clients, stream }: ServedRank, { batchSize, world }: Hello): void {
    const { options } = stream.sequence
    if (clients.size > 0)
      throw new DscError(
        'FEED_PROTOCOL',
        `rank ${rank} is read in batches of ${options.batchSize} of ${options.world} ranks by another client, not ${batchSize} of ${world}`,
        { hint: 'close the other loader first, or start a feed of its own (DSC_FEED_JOB)' },
      )
  }

  /** Closes streams of the rank whose readers have left. */
  #closeIdle(rank: number): void {
    for (const [place, served] of this.#ranks) {
      if (served.rank !== rank || served.clients.size > 0) continue
      this.#engine.closeStream(served.stream)
      this.#ranks.delete(place)
    }
  }
}
