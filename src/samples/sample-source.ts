import type { SamplePlacement } from './plan/sample-placement.js'
import type { SampleTable } from './sample-table.js'

/** Result for one sample of a request. */
export type SampleStatus = 'ok' | 'missing' | 'corrupt' | 'unreachable'

/** Samples to write into the arena; if a client waits, the first one is the missed one. */
export interface ReadRequest {
  /** 0 to nodeCount − 1. */
  readonly node: number
  readonly samples: Uint32Array
  /** Offset of each in the arena, in bytes. */
  readonly offsets: Float64Array
  readonly isMiss: boolean
  /**
   * Aborts when the rest is no longer wanted. A source that can stops, reports 'unreachable' for it and never writes
   * it.
   */
  readonly signal?: AbortSignal | undefined
}

/** Where a sample was read: this machine's disk, a storage node, or the store of the dataset. */
export type SampleOrigin = 'local' | 'peer' | 'store'

/** Called once per sample of a request, in any order. `origin` is given if it differs from the source's. */
export type OnSample = (index: number, status: SampleStatus, origin?: SampleOrigin) => void

/** Source of samples. It writes them into the arena itself and checks each against its CRC-32 before it reports ok. */
export interface SampleSource extends SamplePlacement {
  readonly table: SampleTable
  readonly origin: SampleOrigin
  /** For messages: `node 2 (10.0.0.7:7071)`. */
  nodeName(node: number): string
  /** Resolves when every sample has its status. Never rejects because of a sample or a node. */
  read(request: ReadRequest, onSample: OnSample): Promise<void>
  /**
   * Announces the samples that a stream will read, in order, if that is useful; a stream that moves announces again.
   */
  readonly expect?: ((stream: object, samples: readonly number[]) => void) | undefined
  /** Whether the node is currently asked; absent: always. */
  isNodeUp?(node: number): boolean
  /** Takes new notes for people, such as that a node is lost. */
  takeNotes?(): readonly string[]
  /** Counters for metrics: retries, failovers and the like. */
  counters?(): Readonly<Record<string, number>>
  close(): Promise<void>
}
