import { setTimeout as sleep } from 'node:timers/promises'
import type { Cache } from '../../cache/cache.js'
import { measurePace } from '../../cache/prepare/pace.js'
import { type Prepared, type PrepareProgress, prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import { reportProgress } from '../../cache/prepare/report-progress.js'
import type { Narrator } from '../../cache/surroundings.js'
import type { Dataset } from '../../model/dataset.js'
import { isTimeToPause } from './kubelet-pauses.js'
import { leaseOfPod } from './volume-leases.js'
import type { Pod } from './volume-request.js'

/** Span over which the time left is estimated, in ms: no call should end for a rate that was low for a moment. */
const ESTIMATE_SPAN_MS = 30_000

/**
 * A dataset on its way to this node for the volume of a pod. It outlives the call that began it: kubelet gives a call
 * up after two minutes, and a download may take hours.
 */
export class VolumeStaging {
  /** The copy, leased to the pod. Rejects once the staging has failed or was aborted. */
  readonly prepared: Promise<Prepared>
  readonly pod: Pod
  /** `performance.now()` when it began. */
  readonly beganMs = performance.now()
  readonly #stop = new AbortController()
  readonly #failed = Promise.withResolvers<void>()
  /** The calls that are held: told of each estimate of the time left, in ms. */
  readonly #held = new Set<(leftMs: number) => void>()
  #progress: string
  #problem: string | undefined
  #hasTold = false

  constructor(options: {
    readonly cache: Cache
    readonly dataset: Dataset
    readonly pod: Pod
    readonly note: (sentence: string) => void
  }) {
    const { cache, dataset, pod, note } = options
    this.pod = pod
    this.#progress = `${dataset.name}: waiting for its first bytes`
    const narrator: Narrator = {
      note,
      warn: note,
      progress: (line) => {
        if (line !== undefined) this.#progress = line
      },
    }
    const report = reportProgress(narrator, dataset.name, cache.nowMs)
    const measure = measurePace(ESTIMATE_SPAN_MS)
    const onProgress = (progress: PrepareProgress) => {
      report(progress)
      if (progress.step === 'downloading' || progress.step === 'waiting') {
        const { leftMs } = measure(performance.now(), progress)
        if (leftMs !== undefined) for (const tell of this.#held) tell(leftMs)
      }
      this.#problem = progress.step === 'retrying' ? `${dataset.name}: ${progress.problem}` : undefined
      if (this.#problem !== undefined) this.#failed.resolve()
    }
    this.prepared = prepareDataset(
      cache,
      { dataset, lease: leaseOfPod(pod), isRefresh: false, mayWait: true },
      { signal: this.#stop.signal, onProgress },
    )
    this.prepared.catch(() => {}) // between two calls nothing awaits it
  }

  /** How far it is: `flowers: 2.1 GiB of 15.2 GiB, 310 MiB/s, 40s left, …`. */
  get progress(): string {
    return this.#progress
  }

  /** Why it tries again, if it does: `flowers: no connection to http://s3.example`. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * The copy, if it is ready within `ms`; else undefined, as when the source fails for the first time: its user should
   * not wait two minutes to read why. Also earlier, if the copy would become ready in the `pauseMs` that kubelet takes
   * before its next call. Rejects as `prepared` does.
   */
  async waitAtMost(ms: number, pauseMs: number): Promise<Prepared | undefined> {
    const waiting = new AbortController()
    const paused = Promise.withResolvers<undefined>()
    const endMs = performance.now() + ms
    const tell = (leftMs: number) => {
      if (isTimeToPause({ leftMs, heldMs: endMs - performance.now(), pauseMs })) paused.resolve(undefined)
    }
    this.#held.add(tell)
    const timer = sleep(Math.max(0, ms), undefined, { signal: waiting.signal }).catch(() => undefined)
    const failed = this.#hasTold ? [] : [this.#failed.promise.then(() => undefined)]
    try {
      const prepared = await Promise.race([this.prepared, timer, paused.promise, ...failed])
      this.#hasTold ||= this.#problem !== undefined
      return prepared
    } finally {
      this.#held.delete(tell)
      waiting.abort()
    }
  }

  /** Stops it. What was downloaded stays for the next call. */
  abort(): void {
    this.#stop.abort('its pod gave the volume back')
  }
}
