import type { MessagePort } from 'node:worker_threads'
import type { Fetcher, OpenFetcher } from '../../../sources/source.js'
import { openBandwidthBucket } from './bandwidth-bucket.js'
import { packFailure, unpackFailure } from './failure-wire.js'
import { TransferRunner } from './transfer-runner.js'
import type { TransferTask } from './transfer-task.js'
import type { FromWorker, TaskResult, ToWorker, WorkerSetup } from './worker-wire.js'

const PROGRESS_MS = 100
/**
 * Results that end within this time, in ms, are sent together: a message costs as much as a small object's bytes, 0.1
 * ms.
 */
const GATHER_MS = 2
/** Maximum number of results per message, so that the thread that sends tasks is kept busy too. */
const GATHER_RESULTS = 16

/**
 * The life of a transfer thread: runs the tasks that arrive over `port` and reports in batches, at the end of the
 * event-loop turn in which a task ended, but at most once in 2 ms. The sender decides how many tasks run at once.
 */
export function serveTransfers(port: MessagePort, schemes: Readonly<Record<string, OpenFetcher>>): void {
  let transfers: ThreadTransfers | undefined
  port.on('message', (message: ToWorker) => {
    if (transfers !== undefined) transfers.take(message)
    else transfers = begin(port, message, schemes)
  })
}

function begin(
  port: MessagePort,
  message: ToWorker,
  schemes: Readonly<Record<string, OpenFetcher>>,
): ThreadTransfers {
  if (message.kind !== 'begin') throw new Error(`expected what is to be read, found ${message.kind}`)
  const openFetcher = schemes[message.setup.scheme]
  if (openFetcher === undefined) throw new Error(`no transfer thread reads ${message.setup.scheme}`)
  return new ThreadTransfers(port, message.setup, openFetcher)
}

class ThreadTransfers {
  readonly #port: MessagePort
  readonly #stop = new AbortController()
  readonly #fetcher: Fetcher
  readonly #runner: TransferRunner
  readonly #progress: NodeJS.Timeout
  readonly #asked = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>()
  #lastQuestion = 0
  #results: TaskResult[] = []
  #reportTimer: NodeJS.Timeout | undefined
  #tellNow: NodeJS.Immediate | undefined
  #reportedMs = Number.NEGATIVE_INFINITY
  #reportedBytes = 0

  constructor(port: MessagePort, setup: WorkerSetup, openFetcher: OpenFetcher) {
    this.#port = port
    const { location, connections, stallTimeoutMs } = setup
    this.#fetcher = openFetcher({ location, connections, ask: (question) => this.#ask(question) })
    this.#runner = new TransferRunner({
      fetcher: this.#fetcher,
      stallTimeoutMs,
      signal: this.#stop.signal,
      takeBandwidth: openBandwidthBucket(setup.bandwidth),
      etagEvidence: setup.etagEvidence,
      onChange: () => {},
    })
    this.#progress = setInterval(() => {
      if (this.#runner.counts.receivedBytes !== this.#reportedBytes) this.#report()
    }, PROGRESS_MS)
  }

  take(message: ToWorker): void {
    switch (message.kind) {
      case 'begin':
        return
      case 'tasks':
        for (const { id, task } of message.tasks) this.#begin(id, task)
        return
      case 'answer':
        this.#asked.get(message.id)?.resolve(message.answer)
        this.#asked.delete(message.id)
        return
      case 'no-answer':
        this.#asked.get(message.id)?.reject(unpackFailure(message.failure))
        this.#asked.delete(message.id)
        return
      case 'hurry':
        this.#runner.hurry(message.key, message.range)
        return
      case 'stop':
        this.#stop.abort()
        return
      case 'close':
        clearInterval(this.#progress)
        this.#port.close()
        void this.#runner.close()
    }
  }

  #begin(id: number, task: TransferTask): void {
    this.#runner.run(task).then(
      (value) => this.#end({ id, value }),
      (error: unknown) => this.#end({ id, failure: packFailure(error) }),
    )
  }

  #end(result: TaskResult): void {
    this.#results.push(result)
    if (this.#results.length >= GATHER_RESULTS) this.#report()
    else if (performance.now() - this.#reportedMs > GATHER_MS)
      this.#tellNow ??= setImmediate(() => this.#report())
    else this.#reportTimer ??= setTimeout(() => this.#report(), GATHER_MS)
  }

  #report(): void {
    clearTimeout(this.#reportTimer)
    this.#reportTimer = undefined
    clearImmediate(this.#tellNow)
    this.#tellNow = undefined
    this.#reportedMs = performance.now()
    this.#reportedBytes = this.#runner.counts.receivedBytes
    const news = this.#fetcher.takeNews?.()
    this.#post({ kind: 'report', results: this.#results, counts: { ...this.#runner.counts }, news })
    this.#results = []
  }

  #ask(question: unknown): Promise<unknown> {
    this.#lastQuestion += 1
    const id = this.#lastQuestion
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#post({ kind: 'ask', id, question })
    })
  }

  #post(message: FromWorker): void {
    this.#port.postMessage(message)
  }
}
