/**
 * Runs tasks with at most `concurrency()` at once, asked whenever one may start, until `next` has no more and none is running; a running task may
 * make `next` have more. After the first failure nothing new starts; rejects with it once all running ones ended.
 */
export function runBounded<Task>(options: {
  /** May change while tasks run. */
  readonly concurrency: () => number
  readonly next: () => Task | undefined
  readonly run: (task: Task) => Promise<void>
  /** Called at the first failure: the place to stop what is running. */
  readonly onFailure: (error: unknown) => void
}): Promise<void> {
  const { concurrency, next, run, onFailure } = options
  return new Promise((resolve, reject) => {
    let running = 0
    let failure: { readonly error: unknown } | undefined
    const fail = (error: unknown) => {
      if (failure) return
      failure = { error }
      onFailure(error)
    }
    const ended = () => {
      running -= 1
      pump()
    }
    const pump = () => {
      while (!failure && running < concurrency()) {
        let task: Task | undefined
        try {
          task = next()
        } catch (error) {
          fail(error)
          break
        }
        if (task === undefined) break
        running += 1
        run(task).catch(fail).then(ended)
      }
      if (running > 0) return
      if (failure) reject(failure.error)
      else resolve()
    }
    pump()
  })
}
