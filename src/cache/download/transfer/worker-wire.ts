import type { ByteRange } from '../../arrivals/block-set.js'
import type { BandwidthBucket } from './bandwidth-bucket.js'
import type { WireFailure } from './failure-wire.js'
import type { TransferCounts, TransferResults, TransferTask } from './transfer-task.js'

/** What a transfer thread reads, and how. */
export interface WorkerSetup {
  /** Names the adapter that reads the source. */
  readonly scheme: string
  /** Where the objects are, in the words of the adapter. */
  readonly location: unknown
  /** Most connections. */
  readonly connections: number
  readonly stallTimeoutMs: number
  readonly bandwidth: BandwidthBucket | undefined
}

/** What the process says to a transfer worker. */
export type ToWorker =
  /** Comes first. */
  | { readonly kind: 'begin'; readonly setup: WorkerSetup }
  | {
      readonly kind: 'tasks'
      readonly tasks: readonly { readonly id: number; readonly task: TransferTask }[]
    }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'no-answer'; readonly id: number; readonly failure: WireFailure }
  /** Somebody waits for an object, or a range of it. */
  | { readonly kind: 'hurry'; readonly key: string; readonly range: ByteRange | undefined }
  /** Running tasks fail. */
  | { readonly kind: 'stop' }
  /** No more tasks come. */
  | { readonly kind: 'close' }

/** How one task of a worker ended. */
export type TaskResult =
  | { readonly id: number; readonly value: TransferResults[TransferTask['kind']] }
  | { readonly id: number; readonly failure: WireFailure }

/** What a transfer worker says to the process. */
export type FromWorker =
  | {
      readonly kind: 'report'
      readonly results: readonly TaskResult[]
      readonly counts: TransferCounts
      /** For the source (`Fetcher.takeNews`). */
      readonly news: unknown
    }
  /** For the source, too. */
  | { readonly kind: 'ask'; readonly id: number; readonly question: unknown }
