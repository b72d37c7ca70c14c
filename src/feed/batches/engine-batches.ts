import { openOrClose } from '../../failure/closers.js'
import type { FedTime } from '../../model/fed-time.js'
import type { FeedEngine, StreamShape } from '../engine/feed-engine.js'
import type { FeedIdentity } from '../plan/feed-state.js'
import type { BatchStream, LossRule } from '../stream/batch-stream.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import type { BatchReader, FeedItem, ReadBatch } from './batch-reader.js'
import { type TrainerTime, TrainerTimes } from './trainer-time.js'

/** Batches that a process holds at once: it copies one while the next is made. */
const LEASES = 2

/** The batches of a rank from an engine in this process. Closes the engine. */
export class EngineBatches implements BatchReader {
  readonly identity: FeedIdentity
  readonly #engine: FeedEngine
  readonly #stream: BatchStream
  readonly #onLoss: LossRule
  readonly #times = new TrainerTimes(() => performance.now())

  private constructor(engine: FeedEngine, shape: StreamShape, onLoss: LossRule) {
    const { table, orderKind, seed, mix } = engine
    this.#engine = engine
    this.#stream = engine.openStream(shape, LEASES)
    this.#onLoss = onLoss
    this.identity = {
      ...engine.samplesIdentity,
      n: table.count,
      order: orderKind,
      seed,
      last: shape.last,
      mix,
    }
  }

  /** Opens the rank's stream; closes the engine if that fails. */
  static async open(engine: FeedEngine, shape: StreamShape, onLoss: LossRule): Promise<EngineBatches> {
    return openOrClose(async (closers) => {
      closers.add(() => engine.close())
      return new EngineBatches(engine, shape, onLoss)
    })
  }

  get stepsPerEpoch(): number {
    return this.#stream.sequence.stepsPerEpoch
  }

  get batchesPerEpoch(): number {
    return this.#stream.sequence.batchesPerEpoch
  }

  get globalBatch(): number {
    return this.#stream.sequence.globalBatch
  }

  start(epoch: number, step: number): Promise<void> {
    return this.#stream.start(epoch, step)
  }

  async read(epoch: number, step: number): Promise<ReadBatch> {
    const batch = await this.#stream.read(epoch, step, this.#onLoss)
    for (const note of this.#engine.source.takeNotes()) process.emitWarning(note, { type: 'DscWarning' })
    try {
      return { items: this.#copyItems(batch), lost: batch.lost }
    } finally {
      this.#stream.release(batch)
    }
  }

  tell(time: Omit<TrainerTime, 'rank'>): void {
    const { rank } = this.#stream.sequence.options
    this.#times.add({ rank, ...time }, this.#stream.meter.takeCulprits())
  }

  /** How the program has spent its time since the last call; undefined if it has not told. */
  takeTime(): FedTime | undefined {
    return this.#times.take()
  }

  close(): Promise<void> {
    return this.#engine.close()
  }

  #copyItems(batch: LeasedBatch): readonly FeedItem[] {
    const { table } = this.#engine
    const { sampleCount } = this.#stream.sequence.options
    return batch.slots.map(({ sample, position }, i) => {
      const data = Buffer.allocUnsafe(table.lengths[sample]!)
      this.#engine.readSample(batch, i, data)
      return { id: sample, name: table.nameOf(sample), data, isPadded: position >= sampleCount }
    })
  }
}
