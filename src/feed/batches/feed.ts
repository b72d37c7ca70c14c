import { DscError, isDscError } from '../../failure/dsc-error.js'
import { type FeedState, planResume } from '../plan/feed-state.js'
import type { BatchReader, FeedItem, ReadBatch } from './batch-reader.js'
import { FeedGone } from './feed-gone.js'
import { ReaderTime } from './reader-time.js'

/**
 * The batches of a rank. Iterating it gives one epoch; iterating again gives the next. When the feed dies, the
 * iteration throws an error with code FEED_GONE, whose `state` equals `state()`.
 */
export interface Feed extends AsyncIterable<readonly FeedItem[]>, AsyncDisposable {
  readonly stepsPerEpoch: number
  /** Position of the iteration: directly after the last batch handed out. */
  state(): FeedState
  /** Returns to the position of `state`; the next iteration begins there. */
  seek(state: FeedState): void
  close(): Promise<void>
}

interface ReaderFeedOptions {
  /** Dataset name recorded in states. */
  readonly dataset: string
  readonly signal: AbortSignal | undefined
}

/** The feed of a reader. Closes the reader. */
export class ReaderFeed implements Feed {
  readonly #reader: BatchReader
  readonly #options: ReaderFeedOptions
  readonly #time: ReaderTime
  #epoch = 0
  #step = 0
  #isResuming = true
  /** The newest iteration; undefined after a seek, which ends the previous one. */
  #pass: symbol | undefined
  #skipped: FeedState['skipped'] = []
  #closed: Promise<void> | undefined

  constructor(reader: BatchReader, options: ReaderFeedOptions) {
    this.#reader = reader
    this.#options = options
    this.#time = new ReaderTime({
      nowMs: () => performance.now(),
      environment: process.env,
      tell: (time) => reader.tell(time),
    })
  }

  get stepsPerEpoch(): number {
    return this.#reader.stepsPerEpoch
  }

  state(): FeedState {
    const { identity, stepsPerEpoch, globalBatch } = this.#reader
    const isAtEnd = this.#step >= stepsPerEpoch
    return {
      v: 1,
      dataset: this.#options.dataset,
      ...identity,
      epoch: isAtEnd ? this.#epoch + 1 : this.#epoch,
      position: isAtEnd ? 0 : this.#step * globalBatch,
      B: globalBatch,
      skipped: this.#skipped,
    }
  }

  seek(state: FeedState): void {
    const { identity, stepsPerEpoch, globalBatch } = this.#reader
    const place = planResume(state, identity, { globalBatch, stepsPerEpoch })
    this.#epoch = place.epoch
    this.#step = place.step
    this.#skipped = state.skipped
    this.#isResuming = true
    this.#pass = undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly FeedItem[]> {
    if (!this.#isResuming && this.#step > 0) this.#enterNext() // a pass left early is over
    this.#isResuming = false
    const pass = Symbol('pass')
    this.#pass = pass
    const epoch = this.#epoch
    try {
      await this.#ask(() => this.#reader.start(epoch, this.#step))
      while (this.#step < this.#reader.batchesPerEpoch && this.#goesOn(pass)) {
        const { items } = await this.#next(epoch)
        this.#time.tell(false)
        yield items
      }
    } finally {
      if (!this.#closed) this.#time.tell(true)
    }
    if (this.#goesOn(pass)) this.#enterNext()
  }

  close(): Promise<void> {
    if (!this.#closed) this.#time.tell(true)
    this.#closed ??= this.#reader.close()
    return this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Whether an iteration continues; false after a seek. Throws if another iteration has replaced it. */
  #goesOn(pass: symbol): boolean {
    if (this.#pass === undefined || this.#pass === pass) return this.#pass === pass
    throw new DscError('USAGE', 'another iteration of this feed has begun, which ended this one', {
      hint: 'openFeed once for each of the iterations that run side by side',
    })
  }

  #enterNext(): void {
    this.#epoch++
    this.#step = 0
  }

  async #next(epoch: number): Promise<ReadBatch> {
    const batch = await this.#ask(() => this.#reader.read(epoch, this.#step))
    this.#skipped = [...this.#skipped, ...batch.lost.map((sample) => [epoch, sample] as const)]
    this.#step++
    return batch
  }

  /** Asks the reader; adds the iteration's position to a FEED_GONE failure. */
  async #ask<T>(question: () => Promise<T>): Promise<T> {
    this.#options.signal?.throwIfAborted()
    try {
      if (this.#closed) throw new DscError('FEED_GONE', 'the feed has been closed')
      return await this.#time.waitFor(question)
    } catch (error) {
      throw isDscError(error, 'FEED_GONE') ? new FeedGone(error, this.state()) : error
    }
  }
}
