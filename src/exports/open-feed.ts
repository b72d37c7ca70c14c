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
import { samplesCacheFolder } from '../open/samples-folder.js'
import type { SampleLayout } from '../samples/plan/sample-placement.js'
import { openSurroundings } from './surroundings.js'

/** Where the samples come from, as for `dsc feed serve`, and how they are read. One of `dataset`, `mix`, `from` and `socket`. */
export interface OpenFeedOptions extends Omit<FeedSettings, 'mix'> {
  /** A directory, the name of a dataset (staged if need be, whole or in stripes), or the URL of its source. */
  readonly dataset?: string
  /**
   * When a dataset that is not here is fed: while it comes ('arriving', default; 'unproven': of tar shards also samples
   * that are proven with their shard later), or once it is here ('staged'), as a mix always is.
   */
  readonly start?: FeedStart
  /** Datasets (with `from`: first folders of the samples' names) → how often an epoch visits each of their samples. */
  readonly mix?: Readonly<Record<string, number>>
  /** Storage nodes (`dsc feed storage`) to read from; with layout `striped` in the order of their stripes. */
  readonly from?: readonly StorageAddress[]
  /** How samples lie on the storage nodes. Default 'full': each has all of them. */
  readonly layout?: SampleLayout
  /** A directory, or a dataset whose source is read, when no storage node can give a sample. */
  readonly fallback?: string
  /** Whether storage nodes must show a certificate that `agent.tls.caFile` of dsc.yaml vouches for. Default false. */
  readonly tls?: boolean
  /** What storage nodes are shown. Default: DSC_FEED_TOKEN of the environment. */
  readonly token?: string
  /** Socket of a running `dsc feed serve`, shared with other processes; its memory, k and the like are its own. */
  readonly socket?: string
  /** A feed on `socket` that is silent for so long while it is waited for counts as gone. Default 300 s. */
  readonly timeoutMs?: number
  /** Folder inside each dataset. */
  readonly split?: string
  /** Extensions of the files that are samples, for example ['png', 'jpg']. Default: all files. */
  readonly only?: readonly string[]
  /** Columns of rows of Parquet files, in this order. Default: all. */
  readonly columns?: readonly string[]
  /** How samples lie in files, whatever those look like; 'files': each is one. Default: by what most of them is. */
  readonly as?: FeedRequest['format']
  /** Samples in a batch of this rank. */
  readonly batchSize: number
  /** Default 0 of 1. LOCAL_WORLD_SIZE of the environment says how many ranks are on this machine (default 1). */
  readonly rank?: number
  readonly world?: number
  readonly replicate?: number
  /** Default 'drop'. */
  readonly last?: LastBatchRule
  /** Default 'fixed'. */
  readonly assign?: AssignRule
  /**
   * What becomes of a sample that cannot be read: 'raise' (default), or 'skip' it and record it in the state; of a
   * damaged shard what comes before the damage is fed then.
   */
  readonly onError?: 'raise' | 'skip'
  /** Where lists of samples are kept between runs. Default ~/.cache/dsc/samples. */
  readonly cacheFolder?: string
  /** Default: DSC_CONFIG, else the dsc.yaml beside or above the working directory. Read only where a name needs it. */
  readonly configPath?: string
  /** Ends opening and iterating. */
  readonly signal?: AbortSignal
}

/** Opens a feed in this process, or on the feed that listens on `socket`. Leases are held until it is closed. */
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
  const reader = await EngineBatches.open(await openEngine(options), shape, onLoss)
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

/** Opens the engine of this process, which closes its surroundings, too. */
async function openEngine(options: OpenFeedOptions): Promise<FeedEngine> {
  const surroundings = openSurroundings(options)
  const request: FeedRequest = {
    target: options.dataset,
    mix: options.mix,
    from: options.from,
    layout: options.layout ?? 'full',
    fallback: options.fallback,
    split: options.split,
    extensions: options.only,
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
    engine.onClose(surroundings.close)
    return engine
  })
}

/** What states say was fed. */
function nameOf({ dataset, mix, from }: OpenFeedOptions): string {
  if (dataset !== undefined) return dataset
  if (mix) return Object.keys(mix).join(',')
  return from!.map(({ host, port }) => `${host}:${port}`).join(',')
}
