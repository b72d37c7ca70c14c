import type { MessagePort } from 'node:worker_threads'
import type { Fetcher } from '../source.js'
import { openBandwidthBucket } from './bandwidth-bucket.js'
import { packFailure, unpackFailure } from './failure-wire.js'
import { TransferRunner } from './transfer-runner.js'
import type { TransferTask } from './transfer-task.js'
import type { FromWorker, TaskResult, ToWorker, WorkerSetup } from './worker-wire.js'

const PROGRESS_MS = 100

/**
 * The life of a transfer thread: does the tasks that come over `port` and reports in batches, one for all that ends
 * in one turn of the event loop. How many tasks there are at once is up to who sends them.
 */
export function serveTransfers(
  port: MessagePort,
  setup: WorkerSetup,
  openFetcher: (askCredentials: () => Promise<unknown>) => Fetcher,
): void {
  const stop = new AbortController()
  const asked: { resolve: (credentials: unknown) => void; reject: (error: Error) => void }[] = []
  let results: TaskResult[] = []
  let isReportDue = false
  let toldBytes = 0
  const post = (message: FromWorker) => port.postMessage(message)
  const fetcher = openFetcher(
    () =>
      new Promise((resolve, reject) => {
        asked.push({ resolve, reject })
        post({ kind: 'ask-credentials' })
      }),
  )
  const runner = new TransferRunner({
    fetcher,
    stallTimeoutMs: setup.stallTimeoutMs,
    signal: stop.signal,
    takeBandwidth: openBandwidthBucket(setup.bandwidth),
    onChange: () => {},
  })
  const report = () => {
    isReportDue = false
    toldBytes = runner.counts.receivedBytes
    post({ kind: 'report', results, counts: { ...runner.counts } })
    results = []
  }
  const progress = setInterval(() => {
    if (runner.counts.receivedBytes !== toldBytes) report()
  }, PROGRESS_MS)
  const end = (result: TaskResult) => {
    results.push(result)
    if (isReportDue) return
    isReportDue = true
    setImmediate(report)
  }
  const begin = ({ id, task }: { readonly id: number; readonly task: TransferTask }) => {
    runner.run(task).then(
      (value) => end({ id, value }),
      (error: unknown) => end({ id, failure: packFailure(error) }),
    )
  }
  port.on('message', (message: ToWorker) => {
    switch (message.kind) {
      case 'tasks':
        message.tasks.forEach(begin)
        return
      case 'credentials':
        for (const { resolve } of asked.splice(0)) resolve(message.credentials)
        return
      case 'no-credentials':
        for (const { reject } of asked.splice(0)) reject(unpackFailure(message.failure))
        return
      case 'stop':
        stop.abort()
        return
      case 'close':
        clearInterval(progress)
        port.close()
        void fetcher.close()
    }
  })
}
