/**
 * What was opened so far, each with what gives it back. Closing goes the other way round, since what was opened later
 * stands on what was opened before it.
 *
 * AsyncDisposableStack does the same, but Node 22 has none, and it wraps failures in SuppressedError, which has no
 * code: here the first failure is thrown as it is, so that users see its code and hint.
 */
export class Closers {
  #closes: (() => unknown)[] = []

  /** Has `close` called when all is given back, before everything that was added earlier. */
  add(close: () => unknown): void {
    this.#closes.push(close)
  }

  /** Gives everything back, once; throws the first failure after all were tried. */
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

  /** As `close`, within this turn: for what is closed without waiting. */
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
 * Opens something that consists of several. What `open` added to its closers is given back if it fails, and stays open
 * if it does not: whoever gets the result closes it.
 */
export async function openOrClose<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = new Closers()
  try {
    return await open(closers)
  } catch (error) {
    await closers.close().catch(() => {}) // why it could not be opened says more
    throw error
  }
}

/** As `openOrClose`, for what is opened and closed without waiting. */
export function openOrCloseNow<T>(open: (closers: Closers) => T): T {
  const closers = new Closers()
  try {
    return open(closers)
  } catch (error) {
    try {
      closers.closeNow()
    } catch {
      // why it could not be opened says more
    }
    throw error
  }
}

/** Opens things for as long as `use` runs: what it added to its closers is given back in any case. */
export async function useAndClose<T>(use: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = new Closers()
  const result = await openOrClose((failed) => {
    failed.add(() => closers.close())
    return use(closers)
  })
  await closers.close()
  return result
}
