import type { WireFailure } from '../../../failure/failure-wire.js'
import type { ByteRange } from '../../arrivals/block-set.js'
import type { BandwidthBucket } from './bandwidth-bucket.js'
import type { EtagEvidence } from './etag-judge.js'
import type { FileTurns } from './file-turns.js'
import type { TransferCounts } from './transfer-task.js'

/** The source of a transfer thread, and its limits. */
export interface WorkerSetup {
  /** Names the adapter that reads the source. */
  readonly scheme: string
  /** Location of the objects, in the adapter's own format. */
  readonly location: unknown
  /** Maximum number of connections. */
  readonly connections: number
  readonly stallTimeoutMs: number
  readonly bandwidth: BandwidthBucket | undefined
  readonly etagEvidence: EtagEvidence
  readonly turns: FileTurns
}

/** A word from the process to a transfer worker, beside its tasks. */
export type ToWorker =
  /** The first message. */
  | { readonly kind: 'begin'; readonly setup: WorkerSetup }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'no-answer'; readonly id: number; readonly failure: WireFailure }
  /** A reader waits for an object, or a range of it. */
  | { readonly kind: 'hurry'; readonly key: string; readonly range: ByteRange | undefined }
  /** Fails the running tasks. */
  | { readonly kind: 'stop' }
  /** No more tasks follow. */
  | { readonly kind: 'close' }

/** A word from a transfer worker to the process, beside its results. */
export type FromWorker =
  | {
      readonly kind: 'report'
      readonly counts: TransferCounts
      /** For the source (`Fetcher.takeNews`). */
      readonly news: unknown
    }
  /** Also for the source. */
  | { readonly kind: 'ask'; readonly id: number; readonly question: unknown }
