import type { OnSample, ReadRequest, SampleSource } from '../samples/sample-source.js'
import type { SampleTable } from '../samples/sample-table.js'
import type { ReaderPool } from '../threads/reader-pool.js'
import { LocalSource } from './local-source.js'

/** Files that are coming to this machine. */
export interface Arrivals {
  /** For messages; says why where they come no more. */
  readonly name: string
  /** Whether all of them are here. */
  readonly isComplete: boolean
  /** Files that are here already. */
  isHere(file: number): boolean
  /** Says which files will be read, in that order; adds to what was said before. */
  order(files: readonly number[]): void
  /** Waits until a file is here, proven; it comes next. False: it will not come. */
  waitFor(file: number, signal: AbortSignal | undefined): Promise<boolean>
}

/** Files that are ordered ahead of those that were read: enough to keep every connection of a stager busy. */
const ORDER_AHEAD_FILES = 4096
/** Streams take turns with so many files. */
const TURN_FILES = 64

/** What a stream will read, and how much of it was ordered. */
interface Expected {
  readonly files: readonly number[]
  ordered: number
}

/** Samples of plain files of this machine's disk that are still coming: each is read as soon as it is there. */
export class ArrivingSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'local'
  readonly nodeCount = 1
  readonly table: SampleTable
  readonly #arrivals: Arrivals
  readonly #local: LocalSource
  readonly #expected = new Map<object, Expected>()
  #ordered = 0
  #read = 0
  #waits = 0

  constructor(options: {
    readonly root: string
    readonly table: SampleTable
    readonly pool: ReaderPool
    readonly arrivals: Arrivals
  }) {
    this.table = options.table
    this.#arrivals = options.arrivals
    this.#local = new LocalSource(options.root, options.table, options.pool)
  }

  nodeName(): string {
    return this.#arrivals.name
  }

  counters(): Readonly<Record<string, number>> {
    return { arriving_waits: this.#waits }
  }

  expect(stream: object, samples: readonly number[]): void {
    if (this.#arrivals.isComplete) return
    const files = [...new Set(samples.map((sample) => this.table.files[sample]!))]
    this.#expected.set(stream, { files, ordered: 0 })
    this.#orderMore()
  }

  async read(request: ReadRequest, onSample: OnSample): Promise<void> {
    const here: number[] = []
    const coming: number[] = []
    for (const [i, sample] of request.samples.entries())
      (this.#arrivals.isHere(this.table.files[sample]!) ? here : coming).push(i)
    this.#read += request.samples.length
    this.#orderMore()
    const reads = coming.map((i) => this.#readWhenHere(request, i, onSample))
    if (here.length > 0) reads.push(this.#readAll(request, here, onSample))
    // All have ended before the request does: what a thread still writes to must not be given away.
    const failed = (await Promise.allSettled(reads)).find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  close(): Promise<void> {
    return this.#local.close()
  }

  async #readWhenHere(request: ReadRequest, i: number, onSample: OnSample): Promise<void> {
    this.#waits += 1
    const isHere = await this.#arrivals.waitFor(this.table.files[request.samples[i]!]!, request.signal)
    if (isHere) return this.#readAll(request, [i], (at, status) => onSample(at, status, 'store'))
    onSample(i, 'unreachable')
  }

  #readAll(request: ReadRequest, places: readonly number[], onSample: OnSample): Promise<void> {
    const samples = Uint32Array.from(places, (i) => request.samples[i]!)
    const offsets = Float64Array.from(places, (i) => request.offsets[i]!)
    return this.#local.read({ ...request, samples, offsets }, (at, status, origin) =>
      onSample(places[at]!, status, origin),
    )
  }

  /** Orders on, of one stream after the other, as reading goes on. */
  #orderMore(): void {
    for (let isMore = true; isMore && this.#ordered < this.#read + ORDER_AHEAD_FILES; ) {
      isMore = false
      for (const expected of this.#expected.values()) {
        const turn = expected.files.slice(expected.ordered, expected.ordered + TURN_FILES)
        if (turn.length === 0) continue
        isMore = true
        expected.ordered += turn.length
        this.#ordered += turn.length
        this.#arrivals.order(turn.filter((file) => !this.#arrivals.isHere(file)))
      }
    }
  }
}
