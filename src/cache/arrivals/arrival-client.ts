import { connect, type Socket } from 'node:net'
import type { ReaderStatus } from '../../model/reader-status.js'
import { HeldFolder } from '../../platform/held-folder.js'
import {
  ARRIVALS_VERSION,
  type FromStager,
  readArrivalMessages,
  SOCKET_NAME,
  sendArrivalMessage,
} from './arrival-wire.js'

/** Keys of one `order` message: far below the longest line. */
const ORDER_CHUNK_KEYS = 500

/** What became of a wait: `gone`: whoever staged has ended, in whatever way; `unknown`: there is no such object. */
type Arrival = 'there' | 'unknown' | 'gone'

/** A reader's connection to the stager of one arriving copy. */
export class ArrivalClient {
  readonly #socket: Socket
  #tell: ((readers: readonly ReaderStatus[]) => void) | undefined
  readonly #waits = new Map<string, ((arrival: Arrival) => void)[]>()

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.unref()
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      for (const key of [...this.#waits.keys()]) this.#settle(key, 'gone')
    })
  }

  /**
   * Connects to whoever stages in the folder; undefined where nobody does, or nobody whom this user may ask. `name` is
   * shown to people.
   */
  static open(copyDirectory: string, name = ''): Promise<ArrivalClient | undefined> {
    const folder = HeldFolder.find(copyDirectory)
    if (folder === undefined) return Promise.resolve(undefined) // published or given up
    const socket = connect(folder.pathOf(SOCKET_NAME))
    folder.close() // the address was taken when connect returned
    const client = new ArrivalClient(socket)
    return new Promise((resolve) => {
      socket.once('close', () => resolve(undefined))
      readArrivalMessages(socket, (message) => {
        if ((message as { arrivals?: unknown }).arrivals === ARRIVALS_VERSION) {
          if (name !== '') sendArrivalMessage(socket, { name })
          resolve(client)
        } else client.#take(message as FromStager)
      })
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Says which objects this reader will use next, in that order; adds to what it said before. */
  order(keys: readonly string[]): void {
    for (let from = 0; from < keys.length; from += ORDER_CHUNK_KEYS)
      sendArrivalMessage(this.#socket, { order: keys.slice(from, from + ORDER_CHUNK_KEYS) })
  }

  /** Waits for an object, which is fetched next. Resolves with `gone`, too, when nobody waits any more. */
  want(key: string, signal?: AbortSignal): Promise<Arrival> {
    if (!this.isOpen || signal?.aborted) return Promise.resolve('gone')
    return new Promise((resolve) => {
      const giveUp = () => settle('gone')
      const settle = (arrival: Arrival) => {
        signal?.removeEventListener('abort', giveUp)
        resolve(arrival)
      }
      signal?.addEventListener('abort', giveUp, { once: true })
      const waits = this.#waits.get(key)
      if (waits) waits.push(settle)
      else {
        this.#waits.set(key, [settle])
        sendArrivalMessage(this.#socket, { want: key })
      }
    })
  }

  /** Who reads the copy, and what each waits for; empty when the stager has gone. */
  describe(): Promise<readonly ReaderStatus[]> {
    return new Promise((resolve) => {
      if (!this.isOpen) resolve([])
      this.#socket.once('close', () => resolve([]))
      this.#tell = resolve
      sendArrivalMessage(this.#socket, { status: true })
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Throws for what is no message: then the connection ends. */
  #take(message: FromStager): void {
    if ('there' in message) this.#settle(message.there, 'there')
    else if ('unknown' in message) this.#settle(message.unknown, 'unknown')
    else if ('readers' in message) this.#tell?.(message.readers)
    else throw new TypeError('expected there, unknown or readers')
  }

  #settle(key: string, arrival: Arrival): void {
    const waits = this.#waits.get(key) ?? []
    this.#waits.delete(key)
    for (const resolve of waits) resolve(arrival)
  }
}
