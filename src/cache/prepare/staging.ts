import type { Dataset } from '../../model/dataset.js'
import type { HeldFolder } from '../../platform/held-folder.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { Origins, Source } from '../../sources/source.js'
import type { NodeShare } from '../download/node-share.js'
import type { WaitingThreads } from '../download/transfer/waiting-threads.js'

/** Step of a staging, for those who watch it. */
export type StageProgress =
  | { readonly step: 'listing'; readonly objects: number }
  /**
   * The source could not be listed, for the reason in `problem`. Retries follow: at most `attemptsLeft`, or for minutes
   * if undefined.
   */
  | { readonly step: 'retrying'; readonly problem: string; readonly attemptsLeft: number | undefined }
  | { readonly step: 'evicting'; readonly victims: readonly Victim[] }
  | {
      readonly step: 'downloading'
      readonly writtenBytes: number
      readonly totalBytes: number
      readonly doneFiles: number
      readonly totalFiles: number
      /** Where the bytes come from, on a cluster; absent: from the source. */
      readonly origins?: Origins | undefined
    }
  /** Part of the source is not in the dataset: `problem` says how much, and why. */
  | { readonly step: 'leaving-out'; readonly problem: string }
  | { readonly step: 'publishing' }

/**
 * Asked once a listing shows how many bytes on disk are needed, before anything is evicted for them. Its rejection ends
 * the staging for this task alone: tasks that wait for it stage the dataset themselves.
 */
export type Admit = (neededBytes: number) => Promise<void>

/** The dataset to stage, and what is known about it in advance. */
export interface StageOptions {
  readonly dataset: Dataset
  /** The dataset as the user asked for it, if a service reads it otherwise, such as without credentials. */
  readonly asked?: Dataset | undefined
  readonly onProgress?: (progress: StageProgress) => void
  readonly signal: AbortSignal
  readonly isRefresh?: boolean
  readonly admit?: Admit | undefined
  /** As in `planEviction`. */
  readonly isPrefetch?: boolean | undefined
  readonly sharedWith?: readonly string[]
  /** The version that other nodes have and that this one must have too. */
  readonly version?: string | undefined
  /** Lists the source again, even if an earlier attempt did. */
  readonly isRelisted?: boolean | undefined
  /** Stops once the bytes are admitted, before fetching any. The caller's use lease holds the reservation. */
  readonly isReservation?: boolean | undefined
  /** As in `downloadFiles`. */
  readonly isReadWhileComing?: boolean | undefined
}

/** A running staging: its share of the node's budget, and its listener. */
export interface Staging extends StageOptions {
  readonly share: NodeShare
  readonly reportWritten: (writtenBytes: number) => void
}

/** An open source, and the folder to stage it into. */
export interface OpenStaging {
  readonly source: Source
  /** Undefined if the source is always the store. */
  readonly describeOrigins: (() => Origins) | undefined
  readonly held: HeldFolder
  readonly waitingThreads: WaitingThreads
}
