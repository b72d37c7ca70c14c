/** Takes, for requests that run, how long their clients waited for the first sample that they read during the download. */
export class FirstReads {
  readonly #waiting = new Map<string, (waitedMs: number) => void>()

  /** `first` resolves once the client of this call tells. */
  await(call: string | undefined, uid: number): Disposable & { readonly first: Promise<number> } {
    const { promise, resolve } = Promise.withResolvers<number>()
    const key = `${uid} ${call}`
    if (call !== undefined) this.#waiting.set(key, resolve)
    return { first: promise, [Symbol.dispose]: () => void this.#waiting.delete(key) }
  }

  /** Does nothing for a call that is over, or of another user. */
  note(call: string, { uid, waitedMs }: { readonly uid: number; readonly waitedMs: number }): void {
    this.#waiting.get(`${uid} ${call}`)?.(waitedMs)
  }
}
