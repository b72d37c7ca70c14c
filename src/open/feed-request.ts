import type { SampleSupply } from '../feed/sources/sample-supply.js'
import type { StorageAddress } from '../feed/storage/storage-client.js'
import type { FormatName } from '../model/sample-formats.js'
import type { SampleLayout } from '../samples/plan/sample-placement.js'

/** Where the samples of a feed come from: `target` or `mix`, or, whatever `target` is, `from`, also with a `mix`. */
export interface FeedRequest {
  /** A directory, the name of a dataset, or the URL of its source. */
  readonly target: string | undefined
  /** Directories or datasets (with `from`: first folders of the samples' names) → visits of each sample in an epoch. */
  readonly mix: Readonly<Record<string, number>> | undefined
  /** Storage nodes; with layout `striped` in the order of their stripes. */
  readonly from: readonly StorageAddress[] | undefined
  readonly layout: SampleLayout
  /** A directory, or a dataset whose source is read, when no storage node can give a sample. */
  readonly fallback: string | undefined
  /** Folder of each dataset that holds its samples. */
  readonly split: string | undefined
  /** Extensions of the files that are samples, without dots; undefined: all files. */
  readonly extensions: readonly string[] | undefined
  /** Columns of rows that are fed, in this order; undefined: all. */
  readonly columns?: readonly string[] | undefined
  /** Whether a dataset that is not here is fed while it comes, or first staged. Default 'arriving'. */
  readonly start?: FeedStart | undefined
  /** What folders hold; undefined: by what most of them is. */
  readonly format?: FormatName | undefined
  /** What becomes of damaged shards. Default 'raise'. */
  readonly onDamage?: 'raise' | 'skip' | undefined
  /** Whether storage nodes must show a certificate that `agent.tls.caFile` vouches for. */
  readonly isEncrypted: boolean
  /** What storage nodes are shown. */
  readonly token: string | undefined
  /** Where tables of samples are kept between runs. */
  readonly cacheFolder: string
}

/**
 * When the feed of a dataset that is not here begins: `arriving`: while it comes, with samples of files that are proven;
 * `unproven`: with samples of shards that are proven later; `staged`: once it is here.
 */
export const FEED_STARTS = ['arriving', 'unproven', 'staged'] as const
/** Whether a feed waits until its dataset is here. */
export type FeedStart = (typeof FEED_STARTS)[number]

/** Where samples come from, and what keeps them there. */
export interface LeasedSupply {
  readonly supply: SampleSupply
  release(): Promise<void>
}
