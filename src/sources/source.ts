import type { ObjectChecksum } from '../model/manifest.js'
import type { Urgency } from '../model/urgency.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { OnRetry } from './retry.js'

/** An object as the source lists it. */
export interface ListedObject {
  /** Key relative to the source's prefix; may be hostile. */
  readonly key: string
  readonly sizeBytes: number
  /** Without quotes. */
  readonly etag: string | null
  readonly versionId: string | null
  readonly checksum: ObjectChecksum | null
  /** Unix epoch, ms. */
  readonly modifiedAtMs: number
}

/** The digest of a range, of a node that has it. */
export interface GivenDigest {
  /** `algorithm:base64`. */
  readonly digest: string
  /** That node has proven the whole object: bytes with this digest are the source's. */
  readonly isProven: boolean
}

/** A range of one object to read. */
export interface FetchRequest {
  readonly key: string
  /** Etag (without quotes) and version that the bytes must belong to, else the fetch fails with SOURCE_CHANGED. */
  readonly etag: string | null
  readonly versionId: string | null
  /** What the source listed of the object's bytes; absent: nothing. */
  readonly checksum?: ObjectChecksum | null
  /** Size of the whole object, bytes. */
  readonly sizeBytes: number
  readonly offset: number
  /** Bytes to read; `offset + length <= sizeBytes`. */
  readonly length: number
  /** Where the part begins that the range is of: nodes that share the reading agree on parts. Absent: at `offset`. */
  readonly partOffset?: number
  /** Fails with SOURCE_STALLED when no byte arrives for this long, ms. */
  readonly stallTimeoutMs: number
  /** Called once, before the first byte. */
  readonly onFacts?: (facts: ObjectFacts) => void
  /** Called before the first byte with the digest that the range must have, where another node sends it. */
  readonly onDigest?: (given: GivenDigest) => void
  /** Nothing else proves these bytes: whoever else than the source sends them must give their digest. */
  readonly needsDigest?: boolean
  /** The whole object was fetched before and found wrong: only the source itself is asked. */
  readonly isRepeated?: boolean
  /** For a node that has yet to fetch it itself. Default: `listed`. */
  readonly urgency?: Urgency
  /**
   * Called for each chunk, in order. A chunk is valid only during the call: its memory takes the next bytes.
   * Returns how long to wait before more may come, ms. What it throws ends the fetch and is passed on.
   */
  readonly sink: (chunk: Uint8Array) => number
  readonly signal?: AbortSignal
}

/** Reads objects. Each worker has its own, with its own connections. */
export interface Fetcher {
  /** Makes one attempt to read a range; the caller retries. Rejects with a SourceFailure. */
  fetch(request: FetchRequest): Promise<void>
  /** Asks for an object's checksums and upload parts without reading it. One attempt. */
  inspect(request: InspectRequest): Promise<ObjectFacts>
  /** Somebody waits for an object, or a range of it, which is being fetched. Absent: nothing can be hurried. */
  hurry?(key: string, range?: Pick<FetchRequest, 'offset' | 'length'>): void
  /**
   * What its source is to know since this was called last, plain data; undefined: nothing. A thread hands it over
   * before the results that it belongs to. Absent: never anything.
   */
  takeNews?(): unknown
  /** Ends its connections; running fetches fail. */
  close(): Promise<void>
}

/** An object of which the facts are asked, not the bytes. */
export type InspectRequest = Omit<FetchRequest, 'sink' | 'onFacts' | 'offset' | 'length' | 'partOffset'>

/** How a source is listed. */
export interface ListOptions {
  /** Most requests at once just now, 1 or more; asked whenever one may start. Absent = the source's choice. */
  readonly requestLimit?: () => number
  /** One page after the other, in whatever order the source keeps: never ends in ListingDisorder. */
  readonly isSequential?: boolean
  readonly onRetry?: OnRetry | undefined
  /** Hears of what is in the source and is no object of it, with the reason. */
  readonly onLeftOut?: ((path: string, reason: string) => void) | undefined
  /** No byte for this long fails a question, ms. Default 30,000. */
  readonly stallTimeoutMs?: number | undefined
  readonly signal?: AbortSignal
}

/** A listing in parts found that the source does not keep to the byte order of keys: what was listed is of no use. */
export class ListingDisorder extends Error {}

/** A place that datasets are read from. */
export interface Source {
  /** For messages: no credentials, no query. */
  readonly url: string
  /** Pages of objects, each object once, in any order. Retries inside. May reject with ListingDisorder. */
  list(options: ListOptions): AsyncIterable<readonly ListedObject[]>
  /** Opens a reader with up to `connections` connections (1 to 512). */
  openFetcher(options: { readonly connections: number }): Promise<Fetcher>
  /**
   * Whether a part would be waited for at another node that is still fetching it: it is then asked for beside the
   * requests that are answered at once, never in their place. Absent: never.
   */
  isAwaited?(key: string, offset: number): boolean
  /** Whether other nodes stage the same at this moment: what arrives here is passed on, so the first parts of it soon. */
  isShared?(): boolean
  /** Size of the parts of large objects of a dataset of so many bytes, unless their upload parts suit. Absent: the usual. */
  planPartBytes?(datasetBytes: number): number
  /** What other threads need to open fetchers of their own; absent where only this thread can read. */
  describeAccess?(): Promise<SourceAccess>
  close(): Promise<void>
}

/** How transfer threads read a source. */
export interface SourceAccess {
  /** Names the adapter, of those that the threads know. */
  readonly scheme: string
  /** Plain data that the adapter understands. */
  readonly location: unknown
  /** Answers what a thread's fetcher asks, plain data both ways. Absent: it has nothing to ask. */
  readonly answer?: (question: unknown) => Promise<unknown> | unknown
  /** Hears what a thread's fetcher has to tell (`Fetcher.takeNews`). */
  readonly onNews?: (news: unknown) => void
}

/** Opens a fetcher in a transfer thread. */
export type OpenFetcher = (access: {
  readonly location: unknown
  /** Asks the source, in the main thread; plain data both ways. */
  readonly ask: (question?: unknown) => Promise<unknown>
  readonly connections: number
}) => Fetcher

/** A source that takes objects from other nodes where it can, and knows what came from where. */
export interface StagingSource extends Source {
  readonly describeOrigins: () => Origins
}

/** Bytes received, by where they came from. */
export interface Origins {
  readonly storeBytes: number
  /** By node. */
  readonly peerBytes: Readonly<Record<string, number>>
  /** What nodes failed with that were asked, by node; absent = none failed. */
  readonly failed?: Readonly<Record<string, string>>
}

/** How a dataset is about to be staged. */
export interface StagingPlan {
  /** The source may have changed: it must be listed, not a peer's copy. */
  readonly isRefresh: boolean
  /** Nodes that stage the same dataset at this time, this one among them; empty = alone. */
  readonly sharedWith: readonly string[]
  /** The version that other nodes have and this one is to have, too: listed from one of them. */
  readonly version?: string | undefined
}
