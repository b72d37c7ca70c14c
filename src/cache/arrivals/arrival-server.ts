import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { listenForLines } from '../../frames/lines.js'
import { BoundedMap } from '../../model/bounded-map.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import type { Urgency } from '../../model/urgency.js'
import { HeldFolder } from '../../platform/held-folder.js'
import {
  ARRIVALS_VERSION,
  type Asked,
  type FromReader,
  type FromStager,
  parseFromReader,
  SOCKET_NAME,
  sendArrivalMessage,
} from './arrival-wire.js'
import type { ByteRange } from './block-set.js'
import { idOf, type Need, type OrderOfNeed } from './order-of-need.js'

/** Maximum number of readers connected to one staging; any more poll the manifest instead. */
const MAX_READERS = 256

/** Number of keys whose ids are cached: a reader names a shard again for each of its samples. */
const MAX_KNOWN_IDS = 4096

/** Unsent bytes at which a reader counts as not reading and is disconnected. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/** Maximum length of a reader's name; longer ones are cut. */
const MAX_NAME_LENGTH = 200
/** Number of objects that a status names for each reader. */
const SHOWN_WAITS = 3
/** How long a status counts, in ms: it looks at all waits, and any reader may ask for it. */
const DESCRIBED_MS = 200

interface ArrivalServerOptions {
  /** The staging's folder, which holds the socket. */
  readonly copyDirectory: string
  /** Whether every user who may enter the folder may ask; else those who may write to it. */
  readonly hasOtherReaders?: boolean | undefined
  /** Where to note what readers need. */
  readonly need: OrderOfNeed<Socket>
  /** Id of a key in the manifest; undefined if it has no such key. */
  readonly idOf: (key: string) => number | undefined
  /** Whether the file holds the bytes of a range of an object that is not complete yet. */
  readonly isWritten: (id: number, range: ByteRange) => boolean
  /** Called when a reader starts to wait for something that is not there. */
  readonly onWant?: (need: Need, want: { readonly asked: Asked; readonly urgency: Urgency }) => void
}

/**
 * The stager's side of an arriving copy. It collects what readers will need and what they wait for, and tells them when
 * it is there. The socket has the permissions of the cache's folders, or the folder alone guards it. It replaces a socket left by a killed stager.
 */
export class ArrivalServer {
  readonly need: OrderOfNeed<Socket>
  readonly #options: ArrivalServerOptions
  readonly #server: Server
  readonly #folder: HeldFolder
  #isClosed = false
  readonly #keys = new Map<number, string>()
  readonly #ids = new BoundedMap<string, number | undefined>(MAX_KNOWN_IDS)
  readonly #sockets = new Set<Socket>()
  readonly #names = new Map<Socket, string>()
  #described: { readonly readers: readonly ReaderStatus[]; readonly atMs: number } | undefined

  private constructor(options: ArrivalServerOptions) {
    this.#options = options
    this.need = options.need
    const folder = HeldFolder.find(options.copyDirectory)
    assert.ok(folder, `${options.copyDirectory} is being staged`)
    this.#folder = folder
    this.#server = createServer((socket) => this.#serve(socket))
    this.#server.maxConnections = MAX_READERS
  }

  /** Starts to listen. On a file system without sockets it cannot, and readers poll the manifest. */
  static async open(options: ArrivalServerOptions): Promise<ArrivalServer> {
    const opened = new ArrivalServer(options)
    const path = opened.#folder.pathOf(SOCKET_NAME)
    rmSync(path, { force: true })
    await new Promise<void>((resolve) => {
      opened.#server.once('error', () => resolve())
      const isForAll = options.hasOtherReaders === true
      opened.#server.listen({ path, readableAll: isForAll, writableAll: isForAll }, resolve).unref()
    })
    return opened
  }

  /** Tells the readers that wait for an object, or for ranges of it, that it is written and verified. */
  arrived(id: number): void {
    for (const { reader, need } of this.need.arrived(id)) this.#tellThere(reader, need)
    this.#keys.delete(id)
  }

  /** Tells the readers that wait for ranges of an object which ones have now been written. */
  wrote(id: number): void {
    const { isWritten } = this.#options
    for (const { reader, need } of this.need.wrote(id, (range) => isWritten(id, range)))
      this.#tellThere(reader, need)
  }

  /** Tells all readers that an object does not match its source, although ranges of it were reported as there. */
  spoilt(key: string): void {
    for (const socket of this.#sockets) tell(socket, { spoilt: key })
  }

  /** Ends all connections and removes the socket, which does not belong to a published copy. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    rmSync(this.#folder.pathOf(SOCKET_NAME), { force: true })
    this.#folder.close() // only now: closing the server removes the socket by its path
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.unref()
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#names.delete(socket)
      this.need.forget(socket)
    })
    sendArrivalMessage(socket, { arrivals: ARRIVALS_VERSION })
    listenForLines(socket, {
      parse: parseFromReader,
      onMessage: (message) => void this.#take(socket, message),
    })
  }

  #take(socket: Socket, message: FromReader): void {
    if ('order' in message)
      this.need.addOrder(
        socket,
        message.order.flatMap((asked) => this.#needOf(asked) ?? []),
      )
    else if ('want' in message) this.#want(socket, message.want, message.urgency)
    else if ('name' in message) this.#names.set(socket, message.name.slice(0, MAX_NAME_LENGTH))
    else tell(socket, { readers: this.#describe() })
  }

  #describe(): readonly ReaderStatus[] {
    if (this.#described && performance.now() - this.#described.atMs < DESCRIBED_MS)
      return this.#described.readers
    const readers = Array.from(this.need.describe(), ({ reader, ordered, waitsFor }) => ({
      name: this.#names.get(reader) ?? '',
      ordered,
      waits: waitsFor.length,
      waitsFor: waitsFor.slice(0, SHOWN_WAITS).map((id) => this.#keys.get(id)!),
    }))
    this.#described = { readers, atMs: performance.now() }
    return readers
  }

  #want(socket: Socket, asked: Asked, urgency: Urgency): void {
    const need = this.#needOf(asked)
    if (need === undefined) {
      tell(socket, { unknown: asked })
      return
    }
    const outcome = this.#isWritten(need) ? 'there' : this.need.want(socket, need, urgency)
    if (outcome === 'there') tell(socket, { there: asked })
    else if (outcome === 'coming') {
      this.#keys.set(idOf(need), typeof asked === 'string' ? asked : asked[0])
      this.#options.onWant?.(need, { asked, urgency })
    }
  }

  #isWritten(need: Need): boolean {
    return typeof need !== 'number' && (need.length === 0 || this.#options.isWritten(need.id, need))
  }

  #tellThere(socket: Socket, need: Need): void {
    const key = this.#keys.get(idOf(need))!
    tell(socket, { there: typeof need === 'number' ? key : [key, need.offset, need.length] })
  }

  /** Undefined if there is no such object. */
  #needOf(asked: Asked): Need | undefined {
    if (typeof asked === 'string') return this.#idOf(asked)
    const [key, offset, length] = asked
    const id = this.#idOf(key)
    return id === undefined ? undefined : { id, offset, length }
  }

  /** Caches the manifest's answers: each question is a query to its database. */
  #idOf(key: string): number | undefined {
    return this.#ids.getOrMake(key, () => this.#options.idOf(key))
  }
}

function tell(socket: Socket, message: FromStager): void {
  sendArrivalMessage(socket, message)
  if (socket.writableLength > MAX_WAITING_BYTES) socket.destroy()
}
