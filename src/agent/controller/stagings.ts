import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import { reportProgress } from '../../cache/prepare/report-progress.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'

/** Most downloads that the controller has under way at a time, over all nodes. */
const MAX_STAGINGS = 64
/** A node that failed is asked again after this time, in ms. */
const RETRY_AFTER_MS = 60_000

/** A dataset to stage on a node, and the lease that keeps it. */
export interface StagingAsked {
  readonly node: string
  readonly dataset: Dataset
  readonly lease: LeaseRequest
  /** As in `planEviction`. */
  readonly isPrefetch: boolean
}

/** How far a staging is. `leftMs`: how long it will still take, where that is known. */
export type StagingState =
  | { readonly state: 'under way'; readonly progress: string; readonly leftMs: number | undefined }
  | { readonly state: 'failed'; readonly error: DscError }

/** Asks the agent of a node to prepare a dataset there, and resolves once it is ready. */
export type PrepareThere = (
  asked: StagingAsked,
  onProgress: (progress: PrepareProgress) => void,
) => Promise<unknown>

interface Running {
  state: StagingState
}

interface Failure {
  readonly state: StagingState & { readonly state: 'failed' }
  readonly atMs: number
}

interface StagingsMeans {
  readonly prepare: PrepareThere
  readonly nowMs: () => number
  /** Called when one has ended. */
  readonly onEnd: () => void
}

/** The downloads that agents make for jobs that wait: one for each node and dataset, however many jobs wait for it. */
export class Stagings {
  readonly #means: StagingsMeans
  readonly #running = new Map<string, Running>()
  /** In the order in which they failed. */
  readonly #failed = new Map<string, Failure>()

  constructor(means: StagingsMeans) {
    this.#means = means
  }

  /** Joins a staging, or starts it. It forgets one that succeeded. */
  join(asked: StagingAsked): StagingState {
    const { node, dataset, isPrefetch } = asked
    const key = JSON.stringify([node, dataset.name, isPrefetch])
    this.#forgetFailed()
    const known = this.#running.get(key) ?? this.#failed.get(key)
    if (known) return known.state
    const progress = `${dataset.name}: waiting for its first bytes`
    const begun: Running = { state: { state: 'under way', progress, leftMs: undefined } }
    if (this.#running.size >= MAX_STAGINGS) return begun.state
    void this.#run(key, begun, asked)
    return begun.state
  }

  /** Stops at the first that is kept: thousands of jobs join each round. */
  #forgetFailed(): void {
    const before = this.#means.nowMs() - RETRY_AFTER_MS
    for (const [key, { atMs }] of this.#failed) {
      if (atMs >= before) break
      this.#failed.delete(key)
    }
  }

  async #run(key: string, running: Running, asked: StagingAsked): Promise<void> {
    const { prepare, nowMs, onEnd } = this.#means
    this.#running.set(key, running)
    let progress = ''
    const show = reportProgress(
      { note: () => {}, warn: () => {}, progress: (line) => (progress = line ?? progress) },
      asked.dataset.name,
      nowMs,
    )
    const leftMs = estimate(nowMs)
    try {
      await prepare(asked, (step) => {
        show(step)
        running.state = { state: 'under way', progress, leftMs: leftMs(step) }
      })
    } catch (error) {
      if (!(error instanceof DscError)) throw error
      this.#failed.set(key, { state: { state: 'failed', error }, atMs: nowMs() })
    } finally {
      this.#running.delete(key)
    }
    onEnd()
  }
}

/** Estimates from the progress of a download how long it will still take, in ms. */
function estimate(nowMs: () => number): (step: PrepareProgress) => number | undefined {
  let first: { readonly atMs: number; readonly bytes: number } | undefined
  return (step) => {
    if (step.step !== 'downloading') return undefined
    first ??= { atMs: nowMs(), bytes: step.writtenBytes }
    const bytesPerMs = (step.writtenBytes - first.bytes) / Math.max(1, nowMs() - first.atMs)
    return bytesPerMs > 0 ? (step.totalBytes - step.writtenBytes) / bytesPerMs : undefined
  }
}
