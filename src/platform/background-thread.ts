import { type ResourceLimits, type TransferListItem, Worker } from 'node:worker_threads'

interface BackgroundThreadOptions<Reply> {
  readonly data: unknown
  readonly onReply: (reply: Reply) => void
  /** Called if the thread ends without being stopped. */
  readonly onFailure: (error: Error) => void
  readonly resourceLimits?: ResourceLimits | undefined
}

/** A worker thread that answers messages, and keeps its process alive only between `ref` and `unref`. */
export class BackgroundThread<Order, Reply> {
  /** Resolves when the thread is gone, however it ended. */
  readonly ended: Promise<void>
  readonly #worker: Worker
  #isStopped = false

  /** Starts the module at `url`. */
  constructor(url: URL, options: BackgroundThreadOptions<Reply>) {
    const { data: workerData, resourceLimits } = options
    this.#worker = new Worker(url, { workerData, resourceLimits: resourceLimits ?? {} })
    this.ended = new Promise((resolve) => this.#worker.once('exit', () => resolve()))
    this.#worker.on('message', options.onReply)
    this.#worker.on('error', options.onFailure)
    this.#worker.on(
      'exit',
      () => this.#isStopped || options.onFailure(new Error(`${url.pathname} has ended`)),
    )
    this.#worker.unref() // after 'message', which refs the worker again
  }

  post(order: Order, transfer: readonly TransferListItem[] = []): void {
    this.#worker.postMessage(order, transfer)
  }

  /** Keeps the process alive for this thread: a caller awaits its answer. */
  ref(): void {
    this.#worker.ref()
  }

  /** Lets the process exit: no caller waits, except for the end of the thread. */
  unref(): void {
    if (!this.#isStopped) this.#worker.unref()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#worker.terminate()
  }
}
