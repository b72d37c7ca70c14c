import { DscError, isDscError } from '../failure/dsc-error.js'
import type { BatchReader, FeedItem } from './batch-reader.js'
import { FeedGone } from './feed-gone.js'
import { type FeedState, planResume } from './plan/feed-state.js'

/**
 * The batches of a rank. Iterating it gives one epoch; iterating again gives the next. When the feed dies, the
 * iteration throws an error with code FEED_GONE, whose `state` is what `state()` gives.
 */
export interface Feed extends AsyncIterable<readonly FeedItem[]>, AsyncDisposable {
  readonly stepsPerEpoch: number
  /** Where the iteration is: behind the last batch that was handed out. */
  state(): FeedState
  /** Goes to where `state` was taken; the next iteration begins there. */
  seek(state: FeedState): void
  close(): Promise<void>
}

/** Makes a feed of `reader`, which it closes. `dataset` is what states name. */
export function createFeed(
  reader: BatchReader,
  options: { readonly dataset: string; readonly signal: AbortSignal | undefined },
): Feed {
  const { identity, stepsPerEpoch, batchesPerEpoch, globalBatch } = reader
  let epoch = 0
  let step = 0
  let isResuming = true
  let skipped: FeedState['skipped'] = []
  let closed: Promise<void> | undefined

  const state = (): FeedState => {
    const isAtEnd = step >= stepsPerEpoch
    return {
      v: 1,
      dataset: options.dataset,
      ...identity,
      epoch: isAtEnd ? epoch + 1 : epoch,
      position: isAtEnd ? 0 : step * globalBatch,
      B: globalBatch,
      skipped,
    }
  }
  /** Asks the reader; its failure gets the place where this iteration is. */
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    options.signal?.throwIfAborted()
    try {
      if (closed) throw new DscError('FEED_GONE', 'the feed has been closed')
      return await question()
    } catch (error) {
      throw isDscError(error, 'FEED_GONE') ? new FeedGone(error, state()) : error
    }
  }
  const close = (): Promise<void> => {
    closed ??= reader.close()
    return closed
  }
  async function* iterate(): AsyncGenerator<readonly FeedItem[]> {
    if (!isResuming && step > 0) {
      epoch++ // a pass that was left early is over
      step = 0
    }
    isResuming = false
    await ask(() => reader.start(epoch, step))
    const own = epoch
    while (step < batchesPerEpoch && own === epoch && !isResuming) {
      const batch = await ask(() => reader.read(epoch, step))
      skipped = [...skipped, ...batch.lost.map((sample) => [epoch, sample] as const)]
      step++
      yield batch.items
    }
    if (own !== epoch || isResuming) return
    epoch++
    step = 0
  }
  return {
    stepsPerEpoch,
    [Symbol.asyncIterator]: iterate,
    state,
    seek(state) {
      const place = planResume(state, identity, globalBatch, stepsPerEpoch)
      epoch = place.epoch
      step = place.step
      skipped = state.skipped
      isResuming = true
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
