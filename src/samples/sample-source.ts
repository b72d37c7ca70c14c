import type { SamplePlacement } from './plan/sample-placement.js'
import type { SampleTable } from './sample-table.js'

/** What became of one sample of a request. */
export type SampleStatus = 'ok' | 'missing' | 'corrupt' | 'unreachable'

/** Samples to be put into the arena; the first one is the missed one, if a client waits. */
export interface ReadRequest {
  /** 0 to nodeCount − 1. */
  readonly node: number
  readonly samples: Uint32Array
  /** Where each goes, in bytes of the arena. */
  readonly offsets: Float64Array
  readonly isMiss: boolean
  /** Nobody wants what has not come yet. A source that can stops, says 'unreachable' of it, and never writes it. */
  readonly signal?: AbortSignal | undefined
}

/** Where a sample was read: this machine's disk, a storage node, or the store that the dataset came from. */
export type SampleOrigin = 'local' | 'peer' | 'store'

/** Called once per sample of a request, in any order. `origin` where it is not that of the source. */
export type OnSample = (index: number, status: SampleStatus, origin?: SampleOrigin) => void

/** Where samples come from. Writes them into the arena itself and checks each against its CRC-32 before it says ok. */
export interface SampleSource extends SamplePlacement {
  readonly table: SampleTable
  readonly origin: SampleOrigin
  /** For messages: `node 2 (10.0.0.7:7071)`. */
  nodeName(node: number): string
  /** Resolves when every sample has its status. Never rejects because of a sample or a node. */
  read(request: ReadRequest, onSample: OnSample): Promise<void>
  /** Told what a stream will read, in that order, where that is of use; a stream that goes elsewhere tells anew. */
  readonly expect?: ((stream: object, samples: readonly number[]) => void) | undefined
  /** Whether requests go to the node now; absent: always. */
  isNodeUp?(node: number): boolean
  /** What people should know and has not been taken yet, such as that a node is lost. */
  takeNotes?(): readonly string[]
  /** Counts for metrics: retries, failovers and the like. */
  counters?(): Readonly<Record<string, number>>
  close(): Promise<void>
}
