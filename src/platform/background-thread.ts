import { type ResourceLimits, type TransferListItem, Worker } from 'node:worker_threads'

interface BackgroundThreadOptions<Reply> {
  readonly data: unknown
  readonly onReply: (reply: Reply) => void
  /** The thread is gone, though nobody stopped it. */
  readonly onFailure: (error: Error) => void
  readonly resourceLimits?: ResourceLimits
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
    this.#worker.unref() // after 'message', which takes hold of the process again
  }

  post(order: Order, transfer: readonly TransferListItem[] = []): void {
    this.#worker.postMessage(order, transfer)
  }

  /** The process goes on for this thread: somebody waits for its answer. */
  ref(): void {
    this.#worker.ref()
  }

  /** Nobody waits any more, unless for the end of the thread. */
  unref(): void {
    if (!this.#isStopped) this.#worker.unref()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#worker.terminate()
  }
}
