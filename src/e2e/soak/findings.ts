/** What was found broken, and what was done, for the report at the end. */
export class Findings {
  readonly broken: string[] = []
  readonly counts = new Map<string, number>()
  readonly #startedMs = performance.now()
  readonly #write: (line: string) => void

  constructor(write: (line: string) => void) {
    this.#write = write
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  /** Tells of something that happened. */
  tell(what: string): void {
    this.#write(`${this.#time()} ${what}\n`)
  }

  /** Tells of something that must not be. The same sentence counts once. */
  fail(what: string): void {
    if (this.broken.includes(what)) return
    this.broken.push(what)
    this.#write(`${this.#time()} BROKEN ${what}\n`)
  }

  #time(): string {
    return `${((performance.now() - this.#startedMs) / 1000).toFixed(1).padStart(7)} s`
  }
}
