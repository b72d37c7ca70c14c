import type { ManifestObject, ObjectChecksum } from '../model/manifest.js'
import type { Urgency } from '../model/urgency.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { OnRetry } from './retry.js'

/** An object as the source lists it; its key may be hostile. */
export type ListedObject = Omit<ManifestObject, 'path'>

/** The digest of a range, given by a node that has it. */
export interface GivenDigest {
  /** `algorithm:base64`. */
  readonly digest: string
  /** That node has verified the whole object: bytes with this digest are the source's. */
  readonly isProven: boolean
}

/** A range of one object to read. */
export interface FetchRequest {
  readonly key: string
  /** Etag (without quotes) and version that the bytes must belong to, else the fetch fails with SOURCE_CHANGED. */
  readonly etag: string | null
  readonly versionId: string | null
  /** The checksum that the source listed; absent: none. */
  readonly checksum?: ObjectChecksum | null
  /** Size of the whole object, bytes. */
  readonly sizeBytes: number
  readonly offset: number
  /** Bytes to read; `offset + length <= sizeBytes`. */
  readonly length: number
  /** Where the part containing the range begins: nodes that share the reading agree on parts. Absent: at `offset`. */
  readonly partOffset?: number
  /** Fails with SOURCE_STALLED when no byte arrives for this long, ms. */
  readonly stallTimeoutMs: number
  /** Called once, before the first byte. */
  readonly onFacts?: (facts: ObjectFacts) => void
  /** Called before the first byte with the digest that the range must have, when another node sends it. */
  readonly onDigest?: (given: GivenDigest) => void
  /** Nothing else verifies these bytes: any sender but the source must give their digest. */
  readonly needsDigest?: boolean
  /** The whole object was fetched before and found wrong: only the source itself is asked. */
  readonly isRepeated?: boolean
  /** For a node that has yet to fetch it itself. Default: `listed`. */
  readonly urgency?: Urgency
  /**
   * Called for each chunk, in order. A chunk is valid only during the call: its memory is reused for the next bytes.
   * Returns how long to pause before the next chunk, in ms. Its errors end the fetch and are passed on.
   */
  readonly sink: (chunk: Uint8Array) => number
  /**
   * Memory into which the next bytes are best read: then `sink` has no need to copy them. Valid until `sink` is called.
   * Undefined: any.
   */
  readonly findRoom?: () => Buffer | undefined
  readonly signal?: AbortSignal | undefined
}

/** Reads objects. Each worker has its own, with its own connections. */
export interface Fetcher {
  /** Makes one attempt to read a range; the caller retries. Rejects with a SourceFailure. */
  fetch(request: FetchRequest): Promise<void>
  /** Asks for an object's checksums and upload parts without reading it. One attempt. */
  inspect(request: InspectRequest): Promise<ObjectFacts>
  /** Hurries an object, or a range of it, that is being fetched and waited for. Absent: nothing can be hurried. */
  hurry?(key: string, range?: Pick<FetchRequest, 'offset' | 'length'>): void
  /**
   * News for the source since the last call, plain data; undefined: none. A thread hands it over before the results
   * that it belongs to. Absent: never any news.
   */
  takeNews?(): unknown
  /** Ends its connections; running fetches fail. */
  close(): Promise<void>
}

/** A request for an object's facts, without its bytes. */
export type InspectRequest = Omit<
  FetchRequest,
  'sink' | 'findRoom' | 'onFacts' | 'offset' | 'length' | 'partOffset'
>

/** How to list a source. */
export interface ListOptions {
  /** Maximum number of concurrent requests right now, 1 or more; called before each. Absent = the source's choice. */
  readonly requestLimit?: (() => number) | undefined
  /** Lists one page after the other, in the source's own order: never ends in ListingDisorder. */
  readonly isSequential?: boolean
  readonly onRetry?: OnRetry | undefined
  /** Called with each entry of the source that is not an object, and the reason. */
  readonly onLeftOut?: ((path: string, reason: string) => void) | undefined
  /** A request fails after this long without a byte, in ms. Default 30,000. */
  readonly stallTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A listing in parts found that the source does not keep the byte order of keys: discard its objects. */
export class ListingDisorder extends Error {}

/** A place that datasets are read from. */
export interface Source {
  /** For messages: no credentials, no query. */
  readonly url: string
  /** Pages of objects, each object once, in any order. Retries internally. May reject with ListingDisorder. */
  list(options: ListOptions): AsyncIterable<readonly ListedObject[]>
  /** Opens a reader with up to `connections` connections (1 to 512). */
  openFetcher(options: { readonly connections: number }): Promise<Fetcher>
  /**
   * Whether a part would be waited for at another node that is still fetching it: then it is requested beside the
   * requests that are answered at once, never in their place. Absent: never.
   */
  isAwaited?(key: string, offset: number): boolean
  /**
   * Whether other nodes are staging the same dataset right now: this node passes parts on, so the first ones should
   * arrive soon.
   */
  isShared?(): boolean
  /**
   * Size of the parts of large objects for a dataset of this many bytes, unless their upload parts suit. Absent: the
   * usual.
   */
  planPartBytes?(datasetBytes: number): number
  /** Data for other threads to open fetchers of their own; absent if only this thread can read. */
  describeAccess?(): Promise<SourceAccess>
  close(): Promise<void>
}

/** How transfer threads read a source. */
export interface SourceAccess {
  /** Names one of the adapters that the threads know. */
  readonly scheme: string
  /** Plain data that the adapter understands. */
  readonly location: unknown
  /** Answers questions of a thread's fetcher, plain data both ways. Absent: it asks none. */
  readonly answer?: (question: unknown) => Promise<unknown> | unknown
  /** Receives the news of a thread's fetcher (`Fetcher.takeNews`). */
  readonly onNews?: (news: unknown) => void
}

/** Opens a fetcher in a transfer thread. */
export type OpenFetcher = (access: {
  readonly location: unknown
  /** Asks the source, in the main thread; plain data both ways. */
  readonly ask: (question?: unknown) => Promise<unknown>
  readonly connections: number
}) => Fetcher

/** A source that reads objects from other nodes if it can, and counts bytes by origin. */
export interface StagingSource extends Source {
  readonly describeOrigins: () => Origins
}

/** Bytes received, by origin. */
export interface Origins {
  readonly storeBytes: number
  /** By node. */
  readonly peerBytes: Readonly<Record<string, number>>
  /** Failures of the nodes that were asked, by node; absent = no failures. */
  readonly failed?: Readonly<Record<string, string>>
}

/** How a dataset is about to be staged. */
export interface StagingPlan {
  /** The source may have changed: list it, not a peer's copy. */
  readonly isRefresh: boolean
  /** Nodes that stage the same dataset at the same time, this one included; empty = alone. */
  readonly sharedWith: readonly string[]
  /** The version that other nodes have and this one must stage, too: listed from one of them. */
  readonly version?: string | undefined
}
