import type { SampleSupply } from '../feed/sources/sample-supply.js'
import type { StorageAddress } from '../feed/storage/storage-client.js'
import type { FormatName, ToldDialect } from '../model/sample-formats.js'
import type { SampleLayout } from '../samples/plan/sample-placement.js'

/** Where samples come from: `target` or `mix`; or `from`, which overrides `target` and allows a `mix`, too. */
export interface FeedRequest {
  /** A directory, the name of a dataset, or the URL of its source. */
  readonly target: string | undefined
  /** Visits of each sample per epoch, by directory or dataset (with `from`: by first folder of the samples' names). */
  readonly mix: Readonly<Record<string, number>> | undefined
  /** Storage nodes; with layout `striped`, in the order of their stripes. */
  readonly from: readonly StorageAddress[] | undefined
  readonly layout: SampleLayout
  /** A directory, or a dataset whose source to read, for samples that no storage node can give. */
  readonly fallback: string | undefined
  /** The folder of each dataset that holds its samples. */
  readonly split: string | undefined
  /** Extensions (without dots) or patterns of the files that are samples; undefined: all files. */
  readonly only: readonly string[] | undefined
  /** Columns of rows to feed, in this order; undefined: all. */
  readonly columns?: readonly string[] | undefined
  /** Whether to feed a missing dataset during its download, or only afterwards. Default 'arriving'. */
  readonly start?: FeedStart | undefined
  /** The content of folders; undefined: the format of most of their bytes. */
  readonly format?: FormatName | undefined
  /** How CSV is written, as far as the user says. */
  readonly dialect?: ToldDialect | undefined
  /** How to treat damaged shards. Default 'raise'. */
  readonly onDamage?: 'raise' | 'skip' | undefined
  /** Whether storage nodes must present a certificate signed by `agent.tls.caFile`. */
  readonly isEncrypted: boolean
  /** The token to present to storage nodes. */
  readonly token: string | undefined
  /** Where tables of samples are kept between runs. */
  readonly cacheFolder: string
  /** Called if samples are fed during the download, with a promise that settles when the download is over. */
  readonly onArriving?: ((download: Promise<unknown>) => void) | undefined
}

/**
 * When the feed of a missing dataset starts. `arriving`: during the download, with samples of verified files;
 * `unproven`: with samples of shards that are verified later; `staged`: after the download.
 */
export const FEED_STARTS = ['arriving', 'unproven', 'staged'] as const
/** Whether a feed waits until its dataset is here. */
export type FeedStart = (typeof FEED_STARTS)[number]

/** Where samples come from, and the lease that keeps them there. */
export interface LeasedSupply {
  readonly supply: SampleSupply
  release(): Promise<void>
}
