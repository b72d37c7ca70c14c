import { DscError } from '../../failure/dsc-error.js'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import { placeOf, type SampleTable } from '../../samples/sample-table.js'
import type { ReaderPool } from '../threads/reader-pool.js'
import { LocalSource } from './local-source.js'

/** The awaited part of a file: all of it, verified, or some of its bytes as soon as they are written. */
export type Wanted = number | { readonly file: number; readonly offset: number; readonly length: number }

/** Files being downloaded to this machine. */
export interface Arrivals {
  /** For messages; says why if no more will arrive. */
  readonly name: string
  /** Whether all of them are here. */
  readonly isComplete: boolean
  /** Files whose bytes were here and then turned out to differ from their source. */
  readonly spoilt: ReadonlySet<number>
  /** Whether a file is here already. */
  isHere(file: number): boolean
  /** Appends to the list of files or bytes to read, in that order. */
  order(wanted: readonly Wanted[]): void
  /** Notes that a sample was read. */
  noteRead(): void
  /** Waits until it is here, and moves it to the front. Resolves to false if it will not arrive. */
  waitFor(wanted: Wanted, signal: AbortSignal | undefined): Promise<boolean>
}

/** Number to order ahead of what was read: enough to keep every connection of a stager busy. */
const ORDER_AHEAD = 4096
/** Number that a stream orders per turn. */
const TURN = 64
/** Number of samples of a spoilt file that a message names. */
const SHOWN_SAMPLES = 8

/** Everything a stream will read, and how much of it was ordered. */
interface Expected {
  readonly wanted: readonly Wanted[]
  ordered: number
}

/**
 * Samples from files on this machine's disk that are still being downloaded. Each is read as soon as its file is here
 * and verified. With `unproven`, it is read as soon as its own bytes are here, and reading fails later if the file
 * turns out to be wrong.
 */
export class ArrivingSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'local'
  readonly nodeCount = 1
  readonly table: SampleTable
  readonly #arrivals: Arrivals
  readonly #local: LocalSource
  readonly #takes: 'proven' | 'unproven'
  /** Samples that were read before their files were verified, by file. */
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
    // Every read ends before the request does: a thread may still write to the samples' places until then.
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
    return this.#local.read({ ...request, samples, offsets }, (at, status, origin) => {
      if (status === 'ok') this.#arrivals.noteRead()
      onSample(places[at]!, status, origin)
    })
  }

  /** Orders more as reading proceeds, taking turns between streams. */
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

  /** Throws if samples that were fed turn out to differ from their source: training has seen them. */
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
