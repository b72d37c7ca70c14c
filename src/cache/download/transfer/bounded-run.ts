interface BoundedRunOptions<Task> {
  /** Maximum number of tasks at once; read whenever one may start, as it may change. */
  readonly concurrency: () => number
  readonly next: () => Task | undefined
  readonly run: (task: Task) => Promise<void>
  /** Called at the first failure, to stop the running tasks. */
  readonly onFailure: (error: unknown) => void
}

/** Runs tasks, a bounded number at once. */
export class BoundedRun<Task> {
  /**
   * Settles when `next` has no more tasks and none is running. After a failure, rejects once all running tasks have
   * ended.
   */
  readonly done: Promise<void>
  readonly #options: BoundedRunOptions<Task>
  readonly #settle: { readonly resolve: () => void; readonly reject: (error: unknown) => void }
  #running = 0
  #failure: { readonly error: unknown } | undefined

  constructor(options: BoundedRunOptions<Task>) {
    this.#options = options
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.done = promise
    this.#settle = { resolve, reject }
    this.look()
  }

  /** Starts as many tasks as it may. It runs by itself when a task ends; call it when `next` may have more. */
  look(): void {
    const { concurrency } = this.#options
    while (!this.#failure && this.#running < concurrency()) {
      const task = this.#next()
      if (task === undefined) break
      this.#running += 1
      void this.#run(task)
    }
    if (this.#running > 0) return
    if (this.#failure) this.#settle.reject(this.#failure.error)
    else this.#settle.resolve()
  }

  async #run(task: Task): Promise<void> {
    try {
      await this.#options.run(task)
    } catch (error) {
      this.#fail(error)
    }
    this.#running -= 1
    this.look()
  }

  #next(): Task | undefined {
    try {
      return this.#options.next()
    } catch (error) {
      this.#fail(error)
      return undefined
    }
  }

  #fail(error: unknown): void {
    if (this.#failure) return
    this.#failure = { error }
    this.#options.onFailure(error)
  }
}
