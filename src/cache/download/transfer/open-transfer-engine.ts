import { availableParallelism } from 'node:os'
import type { Source } from '../../../sources/source.js'
import {
  type BandwidthBucket,
  changeBandwidth,
  createBandwidthBucket,
  openBandwidthBucket,
} from './bandwidth-bucket.js'
import { planThreads } from './plan-threads.js'
import { TransferRunner, type TransferRunnerOptions } from './transfer-runner.js'
import type { TransferEngine } from './transfer-task.js'
import { WaitingThreads } from './waiting-threads.js'
import { openWorkerEngine } from './worker-engine.js'

const LOOK_AT_BANDWIDTH_MS = 200

/** Opens the engine that suits the source and the work left. */
export async function openTransferEngine(options: {
  readonly source: Source
  readonly left: { readonly files: number; readonly contentBytes: number }
  /** Maximum number of connections. */
  readonly concurrency: number
  /** Number of transfer threads, 0 = this one; absent = depends on the cores and the work left. */
  readonly threads: number | undefined
  /** Threads started in advance. */
  readonly waitingThreads: WaitingThreads | undefined
  readonly stallTimeoutMs: number
  /** Current limit in bytes per second; absent = no limit. */
  readonly bandwidthLimit: (() => number) | undefined
  readonly signal: AbortSignal
  readonly onChange: () => void
}): Promise<TransferEngine> {
  const { source, left, concurrency, bandwidthLimit } = options
  const threads =
    options.threads ??
    planThreads({
      cores: availableParallelism(),
      concurrency,
      files: left.files,
      bytes: left.contentBytes,
    })
  const waiting = options.waitingThreads ?? new WaitingThreads()
  const bandwidth = bandwidthLimit && createBandwidthBucket(bandwidthLimit())
  const engine =
    threads === 0 || source.describeAccess === undefined
      ? openLocalEngine({
          ...options,
          bandwidth,
          fetcher: await source.openFetcher({ connections: concurrency }),
        })
      : openWorkerEngine({
          ...options,
          bandwidth,
          access: await source.describeAccess(),
          threads: Array.from({ length: Math.min(threads, concurrency) }, () => waiting.take()),
          connections: concurrency,
        })
  if (!bandwidth || !bandwidthLimit) return engine
  const timer = setInterval(() => changeBandwidth(bandwidth, bandwidthLimit()), LOOK_AT_BANDWIDTH_MS)
  return {
    get counts() {
      return engine.counts
    },
    run: (task) => engine.run(task),
    hurry: (key, range) => engine.hurry(key, range),
    async close() {
      clearInterval(timer)
      await engine.close()
    },
  }
}

/** Runs transfer tasks in this thread, for sources that other threads cannot read and for very small downloads. */
function openLocalEngine(
  options: Omit<TransferRunnerOptions, 'takeBandwidth'> & { readonly bandwidth: BandwidthBucket | undefined },
): TransferEngine {
  const { fetcher, stallTimeoutMs, signal, onChange } = options
  const takeBandwidth = openBandwidthBucket(options.bandwidth)
  const runner = new TransferRunner({ fetcher, stallTimeoutMs, signal, takeBandwidth, onChange })
  return {
    counts: runner.counts,
    run: (task) => runner.run(task),
    hurry: (key, range) => runner.hurry(key, range),
    close: () => runner.close(),
  }
}
