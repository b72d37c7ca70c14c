import { openOrClose } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { BatchReader } from '../feed/batches/batch-reader.js'
import { EngineBatches } from '../feed/batches/engine-batches.js'
import { type Feed, ReaderFeed } from '../feed/batches/feed.js'
import type { FeedEngine } from '../feed/engine/feed-engine.js'
import type { FeedSettings } from '../feed/engine/feed-settings.js'
import type { AssignRule } from '../feed/plan/assignment.js'
import { refuseOrderOfOneMachine } from '../feed/plan/group-order.js'
import type { LastBatchRule } from '../feed/plan/rank-sequence.js'
import { SessionBatches } from '../feed/session/session-batches.js'
import type { StorageAddress } from '../feed/storage/storage-client.js'
import type { FeedRequest, FeedStart } from '../open/feed-request.js'
import { openNamedEngine } from '../open/open-named-engine.js'
import { FedTimeRecord, findNoted } from '../open/record-fed-time.js'
import { samplesCacheFolder } from '../open/samples-folder.js'
import type { SampleLayout } from '../samples/plan/sample-placement.js'
import { openSurroundings } from './surroundings.js'

/**
 * The source of the samples, as for `dsc feed serve`, and how to read them. Set one of `dataset`, `mix`, `from` and
 * `socket`.
 */
export interface OpenFeedOptions extends Omit<FeedSettings, 'mix'> {
  /** A directory, the name of a dataset (staged if needed, whole or in stripes), or the URL of its source. */
  readonly dataset?: string
  /**
   * When to feed a dataset that is not on this node: during the download ('arriving', default; 'unproven': also samples
   * of tar shards that are verified later, with their shard), or after it ('staged'), as for every mix.
   */
  readonly start?: FeedStart
  /** Datasets (with `from`: first folders of the samples' names) → visits to each of their samples per epoch. */
  readonly mix?: Readonly<Record<string, number>>
  /** Storage nodes (`dsc feed storage`) to read from; with layout `striped`, in the order of their stripes. */
  readonly from?: readonly StorageAddress[]
  /** How samples are spread over the storage nodes. Default 'full': each has all of them. */
  readonly layout?: SampleLayout
  /** A directory, or a dataset to read from its source, when no storage node can provide a sample. */
  readonly fallback?: string
  /** Whether storage nodes must present a certificate that `agent.tls.caFile` of dsc.yaml verifies. Default false. */
  readonly tls?: boolean
  /** The token for storage nodes. Default: DSC_FEED_TOKEN of the environment. */
  readonly token?: string
  /** Socket of a running `dsc feed serve`, shared with other processes; it has its own memory, k and the like. */
  readonly socket?: string
  /** How long to wait on a silent `socket` before treating its feed as gone. Default 300 s. */
  readonly timeoutMs?: number
  /** Folder inside each dataset. */
  readonly split?: string
  /** Extensions of sample files, for example ['png', 'jpg']. Default: all files. */
  readonly only?: readonly string[]
  /** Columns to read from Parquet files, in this order. Default: all. */
  readonly columns?: readonly string[]
  /**
   * How samples lie in files, regardless of what the files look like; 'files': each file is one. Default: the format
   * of most files.
   */
  readonly as?: FeedRequest['format']
  /** Number of samples in a batch of this rank. */
  readonly batchSize: number
  /** Default 0 of 1. LOCAL_WORLD_SIZE of the environment sets the number of ranks on this machine (default 1). */
  readonly rank?: number
  readonly world?: number
  readonly replicate?: number
  /** Default 'drop'. */
  readonly last?: LastBatchRule
  /** Default 'fixed'. */
  readonly assign?: AssignRule
  /**
   * How to handle an unreadable sample: 'raise' (default), or 'skip' it and record it in the state. With 'skip', a
   * damaged shard is fed up to the damage.
   */
  readonly onError?: 'raise' | 'skip'
  /** Where to keep lists of samples between runs. Default ~/.cache/dsc/samples. */
  readonly cacheFolder?: string
  /** Default: DSC_CONFIG, else the dsc.yaml beside or above the working directory. Read only if a name requires it. */
  readonly configPath?: string
  /** Stops opening and iterating. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Opens a feed in this process, or connects to the feed that listens on `socket`. Holds the leases until it is closed.
 */
export async function openFeed(options: OpenFeedOptions): Promise<Feed> {
  const { dataset, mix, from, socket, signal } = options
  const { batchSize, rank = 0, world = 1, replicate = 1, last = 'drop', assign = 'fixed' } = options
  const shape = { batchSize, rank, world, replicate, last, assign }
  const onLoss = options.onError ?? 'raise'
  if (socket !== undefined) {
    if (dataset !== undefined || mix || from)
      throw new DscError('USAGE', 'openFeed needs either a socket or what is to be fed, not both')
    const { seed, order, timeoutMs = 300_000 } = options
    const connection = { socketPath: socket, timeoutMs, signal }
    const reader = await SessionBatches.open({ ...connection, shape, onLoss, seed, order })
    return openReader(reader, options, socket)
  }
  if (dataset !== undefined && from)
    throw new DscError('USAGE', 'openFeed needs either a dataset or storage nodes, not both', {
      hint: 'fallback: what is read when no storage node can give a sample',
    })
  const reader = await openOwnReader(options, (engine) => EngineBatches.open(engine, shape, onLoss))
  return openReader(reader, options, nameOf(options))
}

async function openReader(
  reader: BatchReader,
  { order: asked, world = 1, signal }: OpenFeedOptions,
  dataset: string,
): Promise<Feed> {
  return openOrClose(async (closers) => {
    closers.add(() => reader.close())
    const localRanks = Number(process.env.LOCAL_WORLD_SIZE ?? 1)
    refuseOrderOfOneMachine({ order: reader.identity.order, asked, world, localRanks })
    return new ReaderFeed(reader, { dataset, signal })
  })
}

/** Opens the engine of this process. The reader notes how the program spends its time, and closes everything. */
async function openOwnReader(
  options: OpenFeedOptions,
  open: (engine: FeedEngine) => Promise<EngineBatches>,
): Promise<EngineBatches> {
  const surroundings = openSurroundings(options)
  const request: FeedRequest = {
    target: options.dataset,
    mix: options.mix,
    from: options.from,
    layout: options.layout ?? 'full',
    fallback: options.fallback,
    split: options.split,
    only: options.only,
    columns: options.columns,
    start: options.start,
    format: options.as,
    onDamage: options.onError,
    isEncrypted: options.tls ?? false,
    token: options.token ?? process.env.DSC_FEED_TOKEN,
    cacheFolder: options.cacheFolder ?? samplesCacheFolder(process.env),
  }
  return openOrClose(async (closers) => {
    closers.add(surroundings.close)
    const engine = await openNamedEngine(surroundings, request, { ...options, mix: undefined })
    const reader = await open(engine)
    const noted = findNoted(request)
    if (noted !== undefined) {
      const time = new FedTimeRecord(surroundings, noted, () => reader.takeTime())
      engine.onClose(() => time.close())
    }
    engine.onClose(surroundings.close)
    return reader
  })
}

/** The dataset's name in saved states. */
function nameOf({ dataset, mix, from }: OpenFeedOptions): string {
  if (dataset !== undefined) return dataset
  if (mix) return Object.keys(mix).join(',')
  return from!.map(({ host, port }) => `${host}:${port}`).join(',')
}
