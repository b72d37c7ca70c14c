import type { DscError } from '../../failure/dsc-error.js'
import type { OnSample } from '../../samples/sample-source.js'
import type { ExpectedItems } from './item-receiver.js'
import { formatGetBatch, formatStorageFrame, STORAGE_MESSAGE } from './storage-wire.js'

/** Samples to fetch into the arena. */
export interface SampleFetch {
  readonly samples: Uint32Array
  readonly offsets: Float64Array
  readonly maxBytes: number
  /** How long the node may be silent, in ms. */
  readonly deadlineMs: number
  readonly onSample: OnSample
}

/** A request in flight. */
export interface Fetch {
  /** Resolves at the end with the indexes that were not sent; rejects when the connection is lost or too slow. */
  readonly done: Promise<readonly number[]>
  /** Discards bytes of this sample from now on, because another source writes its place. */
  readonly abandon: (index: number) => void
  /** Tells the server to stop, and discards the rest. `done` resolves now with the indexes that had not arrived. */
  readonly cancel: () => void
}

interface PendingFetch {
  readonly request: SampleFetch
  readonly expected: ExpectedItems
  resolve(notSent: readonly number[]): void
  reject(error: Error): void
  readonly timer: NodeJS.Timeout
  /** Whether the server has only answered so far that it is busy. */
  isPutOff: boolean
}

/** The connection that requests go over. */
interface FetchConnection {
  readonly isOpen: boolean
  send(frame: Buffer): void
  /** Gives up the connection. */
  lose(error: DscError): void
  /** Makes an error about this connection. */
  gone(why: string): DscError
}

/** The unfinished requests of one connection. */
export class PendingFetches {
  readonly #connection: FetchConnection
  readonly #pending = new Map<number, PendingFetch>()
  #nextId = 1

  constructor(connection: FetchConnection) {
    this.#connection = connection
  }

  start(request: SampleFetch): Fetch {
    const id = this.#nextId++
    const abandoned = new Set<number>()
    const expected: ExpectedItems = { ...request, open: indexesOf(request.samples), notSent: [], abandoned }
    const done = new Promise<readonly number[]>((resolve, reject) => {
      const timer = setTimeout(() => this.#expire(id), request.deadlineMs)
      this.#pending.set(id, { request, expected, resolve, reject, timer, isPutOff: false })
      this.#send(id)
    })
    return { done, abandon: (index) => void abandoned.add(index), cancel: () => this.#cancel(id) }
  }

  /** Records that bytes of a request arrived, and returns its expected items; undefined if it is no longer wanted. */
  hear(id: number): ExpectedItems | undefined {
    const each = this.#pending.get(id)
    each?.timer.refresh() // the deadline is for silence: a slow node that keeps sending is not given up
    if (each) each.isPutOff = false
    return each?.expected
  }

  /** Completes the answer to a request. */
  end(id: number): void {
    const each = this.#take(id)
    each?.resolve(indexesLeft(each.expected))
  }

  /** Retries a request after `retryMs`, because the server is busy. */
  putOff(id: number, retryMs: number): void {
    const each = this.#pending.get(id)
    if (each) each.isPutOff = true
    setTimeout(() => this.#send(id), retryMs)
  }

  failAll(error: Error): void {
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error)
  }

  #take(id: number): PendingFetch | undefined {
    const each = this.#pending.get(id)
    this.#pending.delete(id)
    clearTimeout(each?.timer)
    return each
  }

  #send(id: number): void {
    const each = this.#pending.get(id)
    if (!each || !this.#connection.isOpen) return
    this.#connection.send(formatGetBatch(id, each.request.samples, each.request.maxBytes))
  }

  #cancel(id: number): void {
    const each = this.#take(id)
    if (!each) return
    this.#connection.send(formatStorageFrame({ type: STORAGE_MESSAGE.cancel, request: id }))
    each.resolve(indexesLeft(each.expected))
  }

  #expire(id: number): void {
    const each = this.#pending.get(id)
    const { deadlineMs } = each!.request
    if (!each!.isPutOff) {
      this.#connection.lose(this.#connection.gone(`has not answered within ${deadlineMs} ms`))
      return
    }
    each!.reject(this.#connection.gone(`has been busy for ${deadlineMs} ms`)) // it still answers other requests
    this.#cancel(id)
  }
}

/** Sample → its indexes. */
function indexesOf(samples: Uint32Array): Map<number, number[]> {
  const open = new Map<number, number[]>()
  for (const [i, sample] of samples.entries()) {
    const indexes = open.get(sample)
    if (indexes) indexes.push(i)
    else open.set(sample, [i])
  }
  return open
}

/** Indexes that have not arrived. */
function indexesLeft({ notSent, open }: ExpectedItems): readonly number[] {
  return [...notSent, ...[...open.values()].flat()]
}
