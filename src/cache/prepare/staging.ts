import type { Dataset } from '../../model/dataset.js'
import type { HeldFolder } from '../../platform/held-folder.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { Origins, Source } from '../../sources/source.js'
import type { NodeShare } from '../download/node-share.js'
import type { WaitingThreads } from '../download/transfer/waiting-threads.js'

/** What a staging is doing, for those who watch. */
export type StageProgress =
  | { readonly step: 'listing'; readonly objects: number }
  /** The source could not be listed: `problem` says why; it is asked at most `attemptsLeft` times more, else for minutes. */
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
  /** Something of the source is no part of the dataset: `problem` says how much, and why. */
  | { readonly step: 'leaving-out'; readonly problem: string }
  | { readonly step: 'publishing' }

/** What is to be staged, and what is known of it before. */
export interface StageOptions {
  readonly dataset: Dataset
  readonly onProgress?: (progress: StageProgress) => void
  readonly signal: AbortSignal
  readonly isRefresh?: boolean
  /** As in `planEviction`. */
  readonly isPrefetch?: boolean | undefined
  readonly sharedWith?: readonly string[]
  /** The version that other nodes have and this one is to have, too. */
  readonly version?: string | undefined
  /** Lists the source again, whatever an earlier attempt listed. */
  readonly isRelisted?: boolean | undefined
  /** Stops once the bytes are admitted, before any is fetched. The caller's use lease keeps the reservation. */
  readonly isReservation?: boolean | undefined
  /** As in `downloadFiles`. */
  readonly isReadWhileComing?: boolean | undefined
}

/** A staging that is under way: how much it may take, and whom it tells. */
export interface Staging extends StageOptions {
  readonly share: NodeShare
  readonly reportWritten: (writtenBytes: number) => void
}

/** A source that is being staged from, and the folder that it goes into. */
export interface OpenStaging {
  readonly source: Source
  /** Undefined where the source is always the store. */
  readonly describeOrigins: (() => Origins) | undefined
  readonly held: HeldFolder
  readonly waitingThreads: WaitingThreads
}
