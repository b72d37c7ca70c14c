import { setTimeout as sleep } from 'node:timers/promises'
import type { Cache } from '../../cache/cache.js'
import { type Prepared, prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import { reportProgress } from '../../cache/prepare/report-progress.js'
import type { Narrator } from '../../cache/surroundings.js'
import type { Dataset } from '../../model/dataset.js'
import { leaseOfPod } from './volume-leases.js'
import type { Pod } from './volume-request.js'

/**
 * A dataset on its way to this node for the volume of a pod. It outlives the call that began it: kubelet gives a call
 * up after two minutes, and a download may take hours.
 */
export class VolumeStaging {
  /** The copy, leased to the pod. Rejects once the staging has failed or was aborted. */
  readonly prepared: Promise<Prepared>
  readonly #stop = new AbortController()
  #progress: string

  constructor(options: {
    readonly cache: Cache
    readonly dataset: Dataset
    readonly pod: Pod
    readonly note: (sentence: string) => void
  }) {
    const { cache, dataset, pod, note } = options
    this.#progress = `${dataset.name}: waiting for its first bytes`
    const narrator: Narrator = {
      note,
      warn: note,
      progress: (line) => {
        if (line !== undefined) this.#progress = line
      },
    }
    this.prepared = prepareDataset(
      cache,
      { dataset, lease: leaseOfPod(pod), isRefresh: false, mayWait: true },
      { signal: this.#stop.signal, onProgress: reportProgress(narrator, dataset.name, cache.nowMs) },
    )
    this.prepared.catch(() => {}) // between two calls nothing awaits it
  }

  /** How far it is: `flowers: 2.1 GiB of 15.2 GiB, 310 MiB/s, 40s left, …`. */
  get progress(): string {
    return this.#progress
  }

  /** The copy, if it is ready within `ms`; else undefined. Rejects as `prepared` does. */
  async waitAtMost(ms: number): Promise<Prepared | undefined> {
    const waiting = new AbortController()
    const timer = sleep(Math.max(0, ms), undefined, { signal: waiting.signal }).catch(() => undefined)
    try {
      return await Promise.race([this.prepared, timer])
    } finally {
      waiting.abort()
    }
  }

  /** Stops it. What was downloaded stays for the next call. */
  abort(): void {
    this.#stop.abort('its pod gave the volume back')
  }
}
