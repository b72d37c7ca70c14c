import type { Fetcher } from '../../../sources/source.js'
import { type BandwidthBucket, openBandwidthBucket } from './bandwidth-bucket.js'
import { TransferRunner } from './transfer-runner.js'
import type { TransferEngine } from './transfer-task.js'

/** Does transfer tasks in this thread, for sources that other threads cannot read and for what is done in no time. */
export function openLocalEngine(options: {
  readonly fetcher: Fetcher
  readonly stallTimeoutMs: number
  readonly bandwidth: BandwidthBucket | undefined
  readonly signal: AbortSignal
  readonly onChange: () => void
}): TransferEngine {
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
