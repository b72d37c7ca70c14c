import { DscError } from '../../failure/dsc-error.js'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import { placeOf, type SampleTable } from '../../samples/sample-table.js'
import type { ReaderPool } from '../threads/reader-pool.js'
import { LocalSource } from './local-source.js'

/** What is waited for of a file: all of it, proven, or some of its bytes, as soon as they are written. */
export type Wanted = number | { readonly file: number; readonly offset: number; readonly length: number }

/** Files that are coming to this machine. */
export interface Arrivals {
  /** For messages; says why where they come no more. */
  readonly name: string
  /** Whether all of them are here. */
  readonly isComplete: boolean
  /** Files whose bytes were here, and which were then found to be other than their source. */
  readonly spoilt: ReadonlySet<number>
  /** Files that are here already. */
  isHere(file: number): boolean
  /** Says what will be read, in that order; adds to what was said before. */
  order(wanted: readonly Wanted[]): void
  /** Waits until it is here; it comes next. False: it will not come. */
  waitFor(wanted: Wanted, signal: AbortSignal | undefined): Promise<boolean>
}

/** What is ordered ahead of what was read: enough to keep every connection of a stager busy. */
const ORDER_AHEAD = 4096
/** Streams take turns with so much of it. */
const TURN = 64
/** Samples of a spoilt file that a message names. */
const SHOWN_SAMPLES = 8

/** What a stream will read, and how much of it was ordered. */
interface Expected {
  readonly wanted: readonly Wanted[]
  ordered: number
}

/**
 * Samples of files of this machine's disk that are still coming. Each is read as soon as its file is there, proven; with
 * `unproven`, as soon as its own bytes are, and whoever read it is told should its file turn out to be wrong.
 */
export class ArrivingSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'local'
  readonly nodeCount = 1
  readonly table: SampleTable
  readonly #arrivals: Arrivals
  readonly #local: LocalSource
  readonly #takes: 'proven' | 'unproven'
  /** Samples that were read before their files were proven, by file. */
  readonly #unproven = new Map<number, number[]>()
  readonly #expected = new Map<object, Expected>()
  #ordered = 0
  #read = 0
  #waits = 0

  constructor(options: {
    readonly root: string
    readonly table: SampleTable
    readonly pool: ReaderPool
    readonly arrivals: Arrivals
    /** Default 'proven'. */
    readonly takes?: 'proven' | 'unproven' | undefined
  }) {
    this.table = options.table
    this.#takes = options.takes ?? 'proven'
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
    const wanted =
      this.#takes === 'unproven'
        ? samples.map((sample) => this.#wantedOf(sample))
        : [...new Set(samples.map((sample) => this.table.files[sample]!))]
    this.#expected.set(stream, { wanted, ordered: 0 })
    this.#orderMore()
  }

  async read(request: ReadRequest, onSample: OnSample): Promise<void> {
    this.#requireSound()
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
    const sample = request.samples[i]!
    const wanted = this.#wantedOf(sample)
    const isHere = await this.#arrivals.waitFor(wanted, request.signal)
    if (typeof wanted !== 'number') this.#noteUnproven(wanted.file, sample)
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
    for (let isMore = true; isMore && this.#ordered < this.#read + ORDER_AHEAD; ) {
      isMore = false
      for (const expected of this.#expected.values()) {
        const turn = expected.wanted.slice(expected.ordered, expected.ordered + TURN)
        if (turn.length === 0) continue
        isMore = true
        expected.ordered += turn.length
        this.#ordered += turn.length
        this.#arrivals.order(
          turn.filter((wanted) => !this.#arrivals.isHere(typeof wanted === 'number' ? wanted : wanted.file)),
        )
      }
    }
  }

  #wantedOf(sample: number): Wanted {
    const { file, offset, length } = placeOf(this.table, sample)
    return this.#takes === 'unproven' ? { file, offset, length } : file
  }

  #noteUnproven(file: number, sample: number): void {
    const known = this.#unproven.get(file)
    if (known) known.push(sample)
    else this.#unproven.set(file, [sample])
  }

  /** Throws when samples that were fed have turned out to be other than their source: training has seen them. */
  #requireSound(): void {
    for (const file of this.#arrivals.spoilt) {
      const samples = this.#unproven.get(file)
      if (samples === undefined) continue
      const names = samples.slice(0, SHOWN_SAMPLES).map((sample) => this.table.nameOf(sample))
      const more = samples.length > SHOWN_SAMPLES ? ` and ${samples.length - SHOWN_SAMPLES} more` : ''
      throw new DscError(
        'FEED_SAMPLE_LOST',
        `${this.table.fileName(file)} did not come as its source holds it, and samples of it were fed before it was proven: ${names.join(', ')}${more}`,
        { hint: 'go back to a checkpoint from before; start="arriving" feeds proven samples only' },
      )
    }
  }
}
