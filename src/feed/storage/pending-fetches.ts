import type { DscError } from '../../failure/dsc-error.js'
import type { OnSample } from '../../samples/sample-source.js'
import type { ExpectedItems } from './item-receiver.js'
import { formatGetBatch, formatStorageFrame, STORAGE_MESSAGE } from './storage-wire.js'

/** Samples to fetch into the arena. */
export interface SampleFetch {
  readonly samples: Uint32Array
  readonly offsets: Float64Array
  readonly maxBytes: number
  /** The node may be silent for so long. */
  readonly deadlineMs: number
  readonly onSample: OnSample
}

/** A request on its way. */
export interface Fetch {
  /** Resolves at the end, with the indexes that were not sent; rejects when the connection is lost or too slow. */
  readonly done: Promise<readonly number[]>
  /** From now on bytes of this sample are thrown away: someone else writes its place. */
  readonly abandon: (index: number) => void
  /** Tells the server to stop, and throws away what still comes. `done` resolves now, with what had not come. */
  readonly cancel: () => void
}

interface PendingFetch {
  readonly request: SampleFetch
  readonly expected: ExpectedItems
  resolve(notSent: readonly number[]): void
  reject(error: Error): void
  readonly timer: NodeJS.Timeout
  /** The server has answered that it is busy, and nothing else yet. */
  isPutOff: boolean
}

/** The connection that requests go over. */
interface FetchConnection {
  readonly isOpen: boolean
  send(frame: Buffer): void
  /** The connection is given up. */
  lose(error: DscError): void
  /** An error about this connection. */
  gone(why: string): DscError
}

/** The requests of one connection that are not over. */
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

  /** What the items of a request are, now that some bytes of them have come; undefined: nobody wants them. */
  hear(id: number): ExpectedItems | undefined {
    const each = this.#pending.get(id)
    each?.timer.refresh() // the deadline is for silence: a slow node that goes on sending is not given up
    if (each) each.isPutOff = false
    return each?.expected
  }

  /** The answer to a request is complete. */
  end(id: number): void {
    const each = this.#take(id)
    each?.resolve(indexesLeft(each.expected))
  }

  /** The server is busy and is to be asked again after `retryMs`. */
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
    each!.reject(this.#connection.gone(`has been busy for ${deadlineMs} ms`)) // it answers other requests meanwhile
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

/** What has not come. */
function indexesLeft({ notSent, open }: ExpectedItems): readonly number[] {
  return [...notSent, ...[...open.values()].flat()]
}
