import type { Asked } from '../cache/arrivals/arrival-wire.js'
import { ArrivingReader } from '../cache/arrivals/arriving-reader.js'
import { DueWaits } from '../cache/arrivals/due-waits.js'
import type { Arrivals, Wanted } from '../feed/sources/arriving-source.js'
import type { Copy } from '../model/copy.js'

/** The files of a copy that is being staged, as a feed sees them; their numbers are those of the feed's table. */
export class CopyArrivals implements Arrivals {
  readonly #copy: Copy
  readonly #keyOf: (file: number) => string
  readonly #here: Uint8Array
  readonly spoilt = new Set<number>()
  readonly noteRead: () => void
  readonly #reader = new ArrivingReader(`the feed of process ${process.pid}`, (key) => this.#noteSpoilt(key))
  readonly #waits = new DueWaits()
  readonly #closing = new AbortController()
  /** Resolves when the download is over; with the reason if it failed. */
  readonly #over: Promise<string | undefined>
  #failure: string | undefined
  #isOver = false
  #ordering = Promise.resolve()

  constructor(options: {
    readonly copy: Copy
    readonly keyOf: (file: number) => string
    /** 1 for each file that is here; updated in place. */
    readonly here: Uint8Array
    /** The copy when it is ready; it must be of the same version. */
    readonly prepared: Promise<Copy>
    readonly noteRead: () => void
  }) {
    this.noteRead = options.noteRead
    this.#copy = options.copy
    this.#keyOf = options.keyOf
    this.#here = options.here
    this.#over = options.prepared
      .then(
        ({ version }) => (version === this.#copy.version ? undefined : 'its source has changed meanwhile'),
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
      .then((failure) => this.#end(failure))
  }

  get name(): string {
    const { dataset } = this.#copy
    return this.#failure === undefined ? `the copy of ${dataset} here` : `${dataset}: ${this.#failure}`
  }

  get isComplete(): boolean {
    return this.#isOver && this.#failure === undefined
  }

  isHere(file: number): boolean {
    return this.isComplete || this.#here[file] === 1
  }

  order(wanted: readonly Wanted[]): void {
    const asked = wanted.map((each) => this.#askedOf(each))
    this.#ordering = this.#ordering.then(() =>
      this.#isOver ? undefined : this.#reader.order(this.#copy, asked),
    )
  }

  async waitFor(wanted: Wanted, signal: AbortSignal = this.#closing.signal): Promise<boolean> {
    const file = typeof wanted === 'number' ? wanted : wanted.file
    if (this.#isOver) return this.isHere(file)
    // Ranges are a few bytes of a part that is started anyway: fetch all of them next.
    const turn = typeof wanted === 'number' ? this.#waits.begin() : undefined
    const outcome = await this.#reader
      .awaitAsked(this.#copy, this.#askedOf(wanted), { signal, turn })
      .catch((error) => {
        if (signal.aborted) return 'unknown' as const
        throw error
      })
      .finally(() => turn?.end())
    if (outcome === 'there' && typeof wanted === 'number') this.#here[file] = 1
    if (outcome === 'gone') await this.#over // it is being published, or was given up
    return this.isHere(file) || (outcome === 'there' && typeof wanted !== 'number')
  }

  close(): void {
    this.#closing.abort()
    this.#reader.close()
  }

  #askedOf(wanted: Wanted): Asked {
    if (typeof wanted === 'number') return this.#keyOf(wanted)
    return [this.#keyOf(wanted.file), wanted.offset, wanted.length]
  }

  #noteSpoilt(key: string): void {
    for (let file = 0; file < this.#here.length; file++) if (this.#keyOf(file) === key) this.spoilt.add(file)
  }

  #end(failure: string | undefined): string | undefined {
    this.#failure = failure
    this.#isOver = true
    this.#reader.close() // ends the waits
    return failure
  }
}
