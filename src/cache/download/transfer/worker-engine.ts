import { leastBusy } from '../../../platform/job-threads.js'
import type { SourceAccess } from '../../../sources/source.js'
import type { BandwidthBucket } from './bandwidth-bucket.js'
import { createEtagEvidence } from './etag-judge.js'
import { createFileTurns } from './file-turns.js'
import type { TransferCounts, TransferEngine } from './transfer-task.js'
import type { TransferThread } from './transfer-thread.js'

const NOTHING: TransferCounts = { receivedBytes: 0, retries: 0, throttled: 0 }

/** Runs transfer tasks in `threads`, each with its own connections. Tasks and results are sent in batches. */
export function openWorkerEngine(options: {
  readonly access: SourceAccess
  readonly threads: readonly TransferThread[]
  /** Maximum number of connections over all threads. */
  readonly connections: number
  readonly stallTimeoutMs: number
  readonly bandwidth: BandwidthBucket | undefined
  readonly signal: AbortSignal
  readonly onChange: () => void
}): TransferEngine {
  const { access, threads, stallTimeoutMs, bandwidth, signal, onChange } = options
  const etagEvidence = createEtagEvidence()
  const turns = createFileTurns()
  for (const [index, thread] of threads.entries()) {
    const connections = Math.max(1, Math.floor((options.connections + index) / threads.length))
    const { location, scheme } = access
    const setup = { location, scheme, connections, stallTimeoutMs, bandwidth, etagEvidence, turns }
    thread.begin({ setup, access, onChange })
  }
  const abort = () => {
    for (const thread of threads) thread.abort()
  }
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return {
    get counts() {
      const sum = { ...NOTHING }
      for (const { counts } of threads)
        for (const name of ['receivedBytes', 'retries', 'throttled'] as const) sum[name] += counts[name]
      return sum
    },
    run(task) {
      return leastBusy(threads).run(task) as Promise<never>
    },
    hurry(key, range) {
      for (const thread of threads) thread.hurry(key, range)
    },
    async close() {
      signal.removeEventListener('abort', abort)
      await Promise.all(threads.map((thread) => thread.close()))
    },
  }
}
