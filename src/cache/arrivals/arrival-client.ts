import { connect, type Socket } from 'node:net'
import { listenForLines } from '../../frames/lines.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import { isMoreUrgent, type Urgency } from '../../model/urgency.js'
import { HeldFolder } from '../../platform/held-folder.js'
import {
  type Asked,
  type FromStager,
  MAX_ORDER_KEYS,
  parseFromStager,
  SOCKET_NAME,
  sendArrivalMessage,
} from './arrival-wire.js'

/** How long to wait for a stager's first message before treating it as stopped or dead, in ms. */
const MAX_SILENCE_MS = 5000

/** Outcome of a wait. `gone`: the stager has ended, for any reason; `unknown`: there is no such object. */
type Arrival = 'there' | 'unknown' | 'gone'

/** A reader of an arriving copy. */
export interface ArrivalReader {
  /** Shown to people; empty: unnamed. */
  readonly name: string
  /** Called with the key of an object whose ranges were reported as there but do not match the source. */
  readonly onSpoilt?: ((key: string) => void) | undefined
}

/** A reader's connection to the stager of one arriving copy. */
export class ArrivalClient {
  /** Resolves when the connection closes. */
  readonly ended: Promise<void>
  readonly #socket: Socket
  #tell: ((readers: readonly ReaderStatus[]) => void) | undefined
  /** By the awaited object or range, as JSON. */
  readonly #waits = new Map<string, { urgency: Urgency; readonly settles: Set<(arrival: Arrival) => void> }>()
  readonly #onSpoilt: ArrivalReader['onSpoilt']

  private constructor(socket: Socket, { onSpoilt }: ArrivalReader) {
    this.#socket = socket
    this.#onSpoilt = onSpoilt
    socket.unref()
    socket.on('error', () => socket.destroy())
    this.ended = new Promise((resolve) => {
      socket.on('close', () => {
        for (const name of [...this.#waits.keys()]) this.#settle(name, 'gone')
        resolve()
      })
    })
  }

  /** Connects to the stager of the folder; undefined if no stager runs, it is silent, or this user may not connect. */
  static open(
    copyDirectory: string,
    reader: ArrivalReader = { name: '' },
  ): Promise<ArrivalClient | undefined> {
    const folder = HeldFolder.find(copyDirectory)
    if (folder === undefined) return Promise.resolve(undefined) // published or given up
    const socket = connect(folder.pathOf(SOCKET_NAME))
    folder.close() // connect has read the address by the time it returns
    const client = new ArrivalClient(socket, reader)
    socket.setTimeout(MAX_SILENCE_MS, () => socket.destroy())
    return new Promise((resolve) => {
      socket.once('close', () => resolve(undefined))
      listenForLines(socket, {
        parse: parseFromStager,
        onMessage(message) {
          if ('arrivals' in message) {
            socket.setTimeout(0)
            if (reader.name !== '') sendArrivalMessage(socket, { name: reader.name })
            resolve(client)
          } else client.#take(message)
          return undefined
        },
      })
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Announces what this reader will use next, in that order; adds to earlier announcements. */
  order(asked: readonly Asked[]): void {
    for (let from = 0; from < asked.length; from += MAX_ORDER_KEYS)
      sendArrivalMessage(this.#socket, { order: asked.slice(from, from + MAX_ORDER_KEYS) })
  }

  /**
   * Waits for an object or range, for `patienceMs` at most (default: for ever). Also resolves with `gone` when the
   * caller stops waiting.
   */
  want(
    asked: Asked,
    {
      urgency = 'wanted',
      signal,
      patienceMs,
    }: {
      readonly urgency?: Urgency
      readonly signal?: AbortSignal | undefined
      readonly patienceMs?: number
    } = {},
  ): Promise<Arrival> {
    if (!this.isOpen || signal?.aborted) return Promise.resolve('gone')
    return new Promise((resolve) => {
      const name = JSON.stringify(asked)
      const settle = (arrival: Arrival) => {
        signal?.removeEventListener('abort', giveUp)
        clearTimeout(timer)
        resolve(arrival)
      }
      const giveUp = () => {
        this.#waits.get(name)?.settles.delete(settle)
        settle('gone')
      }
      const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs).unref()
      signal?.addEventListener('abort', giveUp, { once: true })
      const waits = this.#waits.get(name)
      const isNews = waits === undefined || isMoreUrgent(urgency, waits.urgency)
      if (waits === undefined) this.#waits.set(name, { urgency, settles: new Set([settle]) })
      else waits.settles.add(settle)
      if (waits && isNews) waits.urgency = urgency
      if (isNews) sendArrivalMessage(this.#socket, { want: asked, urgency })
    })
  }

  /** The copy's readers and what each waits for; empty if the stager has gone. */
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

  #take(message: Exclude<FromStager, { arrivals: unknown }>): void {
    if ('there' in message) this.#settle(JSON.stringify(message.there), 'there')
    else if ('unknown' in message) this.#settle(JSON.stringify(message.unknown), 'unknown')
    else if ('spoilt' in message) this.#onSpoilt?.(message.spoilt)
    else this.#tell?.(message.readers)
  }

  #settle(name: string, arrival: Arrival): void {
    const waits = this.#waits.get(name)
    this.#waits.delete(name)
    for (const settle of waits?.settles ?? []) settle(arrival)
  }
}
