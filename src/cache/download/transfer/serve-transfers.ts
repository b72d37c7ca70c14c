import type { MessagePort } from 'node:worker_threads'
import { packFailure, unpackFailure } from '../../../failure/failure-wire.js'
import type { FromJobThread, JobEnd, ToJobThread } from '../../../platform/job-threads.js'
import type { Fetcher, OpenFetcher } from '../../../sources/source.js'
import { openBandwidthBucket } from './bandwidth-bucket.js'
import { TransferRunner } from './transfer-runner.js'
import type { TransferResults, TransferTask } from './transfer-task.js'
import type { FromWorker, ToWorker, WorkerSetup } from './worker-wire.js'

type TaskEnd = JobEnd<TransferResults[TransferTask['kind']]>

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
  port.on('message', (message: ToJobThread<TransferTask, ToWorker>) => {
    if (message.kind === 'jobs') for (const { id, job } of message.jobs) transfers!.begin(id, job)
    else if (transfers !== undefined) transfers.take(message.word)
    else transfers = begin(port, message.word, schemes)
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
  #ends: TaskEnd[] = []
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
      turns: setup.turns,
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

  begin(id: number, task: TransferTask): void {
    this.#runner.run(task).then(
      (value) => this.#end({ id, value }),
      (error: unknown) => this.#end({ id, failure: packFailure(error) }),
    )
  }

  #end(end: TaskEnd): void {
    this.#ends.push(end)
    if (this.#ends.length >= GATHER_RESULTS) this.#report()
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
    this.#post({ kind: 'report', counts: { ...this.#runner.counts }, news }, this.#ends)
    this.#ends = []
  }

  #ask(question: unknown): Promise<unknown> {
    this.#lastQuestion += 1
    const id = this.#lastQuestion
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#post({ kind: 'ask', id, question })
    })
  }

  #post(word: FromWorker, ends: readonly TaskEnd[] = []): void {
    this.#port.postMessage({ ends, word } satisfies FromJobThread<unknown, FromWorker>)
  }
}
