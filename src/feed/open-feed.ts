import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import type { LeasedBatch } from './feed-stream.js'
import { type FeedSettings, openLocalFeeder } from './open-feeder.js'
import { type FeedState, planResume } from './plan/feed-state.js'
import type { LastBatchRule } from './plan/rank-sequence.js'
import { findMixParts } from './samples/find-mix-parts.js'
import { indexSamples } from './samples/index-samples.js'
import { joinSamples, type NamedSamples } from './samples/join-samples.js'

export type { FeedState } from './plan/feed-state.js'

/** Options of `openFeed`. */
export interface OpenFeedOptions extends Omit<FeedSettings, 'mix'> {
  /** Path of a directory of samples, such as `dsc prepare <dataset>` prints. This, or `mix`. */
  readonly dataset?: string
  /** Paths of directories → how often an epoch visits each of their samples. */
  readonly mix?: Readonly<Record<string, number>>
  /** Folder inside each. */
  readonly split?: string
  /** Samples in a batch of this rank. */
  readonly batchSize: number
  /** Default 0 of 1. */
  readonly rank?: number
  readonly world?: number
  readonly replicate?: number
  /** Default 'drop'. */
  readonly last?: LastBatchRule
  /** What becomes of a sample that cannot be read: 'raise' (default), or 'skip' it and record it in the state. */
  readonly onError?: 'raise' | 'skip'
  /** Where the list of samples is kept between runs. Default ~/.cache/dsc/samples. */
  readonly cacheFolder?: string
  readonly signal?: AbortSignal
}

/** One sample of a batch. `data` is a copy of its own. */
export interface FeedItem {
  readonly id: number
  readonly name: string
  readonly data: Buffer
  /** Whether it only fills up the last batch. */
  readonly isPadded: boolean
}

/** A feed inside this process. Iterating it gives one epoch; iterating again gives the next. */
export interface Feed extends AsyncIterable<readonly FeedItem[]>, AsyncDisposable {
  readonly stepsPerEpoch: number
  /** Where the iteration is: behind the last batch that was handed out. */
  state(): FeedState
  /** Goes to where `state` was taken; the next iteration begins there. */
  seek(state: FeedState): void
  close(): Promise<void>
}

/** The samples of `dataset`, or those of the directories of `mix` one after the other. */
async function openSamples(options: OpenFeedOptions) {
  const { dataset, mix, split = '' } = options
  const cacheFolder = options.cacheFolder ?? join(homedir(), '.cache', 'dsc', 'samples')
  const index = (folder: string) => indexSamples(join(folder, split), { cacheFolder })
  if ((dataset === undefined) === (mix === undefined))
    throw new DscError('USAGE', 'openFeed needs either a dataset or a mix')
  if (dataset !== undefined) return { folder: await index(dataset), mix: undefined }
  const targets = Object.entries(mix!)
  const parts: NamedSamples[] = []
  for (const [target] of targets) parts.push({ name: basename(target), folder: await index(target) })
  const folder = joinSamples(parts)
  const times = Object.fromEntries(targets.map(([target, times]) => [basename(target), times]))
  return { folder, mix: findMixParts(folder.table, times) }
}

/** Opens a feed over directories of this machine. */
export async function openFeed(options: OpenFeedOptions): Promise<Feed> {
  const { batchSize, rank = 0, world = 1, replicate = 1, last = 'drop', signal } = options
  const { folder, mix } = await openSamples(options)
  const opened = openLocalFeeder(folder, { ...options, mix })
  const { feeder, table, arenaFile, seed, orderKind } = opened
  let stream: ReturnType<typeof feeder.openStream>
  try {
    stream = feeder.openStream({ batchSize, rank, world, replicate, last }, 2)
  } catch (error) {
    await opened.close()
    throw error
  }
  const { sequence } = stream
  const identity = {
    fingerprint: table.fingerprint,
    n: table.count,
    order: orderKind,
    seed,
    last,
    mix: opened.mix,
  }
  let epoch = 0
  let step = 0
  let isResuming = true
  let skipped: FeedState['skipped'] = []

  const readItems = (batch: LeasedBatch): readonly FeedItem[] =>
    batch.slots.map((slot, i) => {
      const data = Buffer.allocUnsafe(table.lengths[slot.sample]!)
      arenaFile.read(data, batch.offsets[i]!)
      const isPadded = slot.position >= sequence.options.sampleCount
      return { id: slot.sample, name: table.nameOf(slot.sample), data, isPadded }
    })
  async function* iterate(): AsyncGenerator<readonly FeedItem[]> {
    if (!isResuming && step > 0) {
      epoch++ // a pass that was left early is over
      step = 0
    }
    isResuming = false
    await stream.start(epoch, step)
    const own = epoch
    while (step < sequence.batchesPerEpoch && own === epoch && !isResuming) {
      signal?.throwIfAborted()
      const batch = await stream.read(epoch, step, options.onError === 'skip')
      skipped = [...skipped, ...batch.lost.map((sample) => [epoch, sample] as const)]
      const items = readItems(batch)
      stream.release(batch)
      step++
      yield items
    }
    if (own !== epoch || isResuming) return
    epoch++
    step = 0
  }
  return {
    stepsPerEpoch: sequence.stepsPerEpoch,
    [Symbol.asyncIterator]: iterate,
    state: () => {
      const isAtEnd = step >= sequence.stepsPerEpoch
      return {
        v: 1,
        dataset: options.dataset ?? Object.keys(options.mix!).join(','),
        ...identity,
        epoch: isAtEnd ? epoch + 1 : epoch,
        position: isAtEnd ? 0 : step * sequence.globalBatch,
        B: sequence.globalBatch,
        skipped,
      }
    },
    seek(state) {
      const place = planResume(state, identity, sequence.globalBatch, sequence.stepsPerEpoch)
      epoch = place.epoch
      step = place.step
      skipped = state.skipped
      isResuming = true
    },
    close: opened.close,
    [Symbol.asyncDispose]: opened.close,
  }
}
