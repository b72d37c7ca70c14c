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
import { idOf, type Need, OrderOfNeed } from './order-of-need.js'

/** More readers than this of one staging on one machine look at the manifest instead. */
const MAX_READERS = 256

/** Keys of which the id is kept: a reader names shards again for each of their samples. */
const MAX_KNOWN_IDS = 4096

/** A reader for whom more than this waits reads nothing, and is let go, bytes. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/** Longer names of readers are cut. */
const MAX_NAME_LENGTH = 200
/** Objects that a status names for each reader. */
const SHOWN_WAITS = 3

interface ArrivalServerOptions {
  /** The staging's folder, in which the socket lies. */
  readonly copyDirectory: string
  /** Largest id of the manifest. */
  readonly maxId: number
  /** Ids of objects that are there already. */
  readonly there: Iterable<number>
  /** Id of a key of the manifest; undefined: it has none such. */
  readonly idOf: (key: string) => number | undefined
  /** Whether the bytes of a range are in the file, of an object that is not there yet. */
  readonly isWritten: (id: number, range: ByteRange) => boolean
  /** Called when a reader began to wait for something that is not there. */
  readonly onWant?: (need: Need, want: { readonly asked: Asked; readonly urgency: Urgency }) => void
}

/**
 * The stager's side of an arriving copy: takes what readers will need and what they wait for, and tells them when it
 * is there. The socket has the rights of the cache's folders. One that a killed stager left is replaced.
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

  private constructor(options: ArrivalServerOptions) {
    this.#options = options
    this.need = new OrderOfNeed(options.maxId, options.there)
    const folder = HeldFolder.find(options.copyDirectory)
    assert.ok(folder, `${options.copyDirectory} is being staged`)
    this.#folder = folder
    this.#server = createServer((socket) => this.#serve(socket))
    this.#server.maxConnections = MAX_READERS
  }

  /** Begins to listen; where that cannot be, on a file system without sockets, readers look at the manifest. */
  static async open(options: ArrivalServerOptions): Promise<ArrivalServer> {
    const opened = new ArrivalServer(options)
    const path = opened.#folder.pathOf(SOCKET_NAME)
    rmSync(path, { force: true })
    await new Promise<void>((resolve) => {
      opened.#server.once('error', () => resolve())
      opened.#server.listen(path, resolve).unref()
    })
    return opened
  }

  /** Tells those who wait for it, or for ranges of it, that an object is written and proven. */
  arrived(id: number): void {
    for (const { reader, need } of this.need.arrived(id)) this.#tellThere(reader, need)
    this.#keys.delete(id)
  }

  /** Bytes of an object were written: tells those who wait for just these. */
  wrote(id: number): void {
    const { isWritten } = this.#options
    for (const { reader, need } of this.need.wrote(id, (range) => isWritten(id, range)))
      this.#tellThere(reader, need)
  }

  /** Tells all readers that an object is not what its source holds, though ranges of it were there. */
  spoilt(key: string): void {
    for (const socket of this.#sockets) tell(socket, { spoilt: key })
  }

  /** Ends all connections and takes the socket away: it does not belong to a published copy. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    rmSync(this.#folder.pathOf(SOCKET_NAME), { force: true })
    this.#folder.close() // not before: closing the server removes the socket by its path
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
    return Array.from(this.need.describe(), ({ reader, ordered, waitsFor }) => ({
      name: this.#names.get(reader) ?? '',
      ordered,
      waits: waitsFor.length,
      waitsFor: waitsFor.slice(0, SHOWN_WAITS).map((id) => this.#keys.get(id)!),
    }))
  }

  #want(socket: Socket, asked: Asked, urgency: Urgency): void {
    const need = this.#needOf(asked)
    if (need === undefined) tell(socket, { unknown: asked })
    else if (this.#isWritten(need) || this.need.want(socket, need, urgency) === 'there')
      tell(socket, { there: asked })
    else {
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

  /** Undefined: there is no such object. */
  #needOf(asked: Asked): Need | undefined {
    if (typeof asked === 'string') return this.#idOf(asked)
    const [key, offset, length] = asked
    const id = this.#idOf(key)
    return id === undefined ? undefined : { id, offset, length }
  }

  /** Keeps what the manifest answers, whose every question is one to its database. */
  #idOf(key: string): number | undefined {
    return this.#ids.getOrMake(key, () => this.#options.idOf(key))
  }
}

function tell(socket: Socket, message: FromStager): void {
  sendArrivalMessage(socket, message)
  if (socket.writableLength > MAX_WAITING_BYTES) socket.destroy()
}
