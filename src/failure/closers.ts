/**
 * Resources opened so far, each with a function that closes it. Closes in reverse order, since later resources depend
 * on earlier ones.
 *
 * AsyncDisposableStack does the same, but Node 22 lacks it, and it wraps failures in SuppressedError, which has no
 * code: here the first failure is thrown unchanged, so that users see its code and hint.
 */
export class Closers {
  #closes: (() => unknown)[] = []

  /** Registers `close`, to run before every close function that was added earlier. */
  add(close: () => unknown): void {
    this.#closes.push(close)
  }

  /** Closes everything, once; throws the first failure after trying all. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (const close of this.#take()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  /** Like `close`, within this turn: for resources that close without waiting. */
  closeNow(): void {
    const failures: unknown[] = []
    for (const close of this.#take()) {
      try {
        close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  #take(): readonly (() => unknown)[] {
    return this.#closes.splice(0).reverse()
  }
}

/**
 * Opens something that consists of several resources. If `open` fails, closes everything it added to its closers;
 * otherwise they stay open, and the owner of the result closes it.
 */
export async function openOrClose<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = new Closers()
  try {
    return await open(closers)
  } catch (error) {
    await closers.close().catch(() => {}) // the error of opening is more useful
    throw error
  }
}

/** Like `openOrClose`, for resources that open and close without waiting. */
export function openOrCloseNow<T>(open: (closers: Closers) => T): T {
  const closers = new Closers()
  try {
    return open(closers)
  } catch (error) {
    try {
      closers.closeNow()
    } catch {
      // the error of opening is more useful
    }
    throw error
  }
}

/** Settles as `work` does, after `close`, which runs in any case. */
export async function closeAfter<T>(work: Promise<T>, close: () => unknown): Promise<T> {
  try {
    return await work
  } finally {
    await close()
  }
}

/** Opens resources while `use` runs: always closes everything it added to its closers. */
export async function withClosers<T>(use: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = new Closers()
  const result = await openOrClose((failed) => {
    failed.add(() => closers.close())
    return use(closers)
  })
  await closers.close()
  return result
}

/** Runs `close` at the end of the block that says `await using _ = atEnd(…)`, whether it returns or throws. */
export function atEnd(close: () => unknown): AsyncDisposable {
  return { [Symbol.asyncDispose]: async () => void (await close()) }
}

/** Like `atEnd`, within this turn: for `using _ = atEndNow(…)`. */
export function atEndNow(close: () => unknown): Disposable {
  return { [Symbol.dispose]: () => void close() }
}
