import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Codec } from '../half/codec.js'
import { type HostMemory, openPeerMemory, type PeerMemory } from './host/host-memory.js'
import { MemoryReader } from './host/memory-reader.js'
import { MemoryWriter } from './host/memory-writer.js'
import type { Links } from './links.js'
import type { Levels } from './plan/find-levels.js'
import type { Welcome } from './rendezvous/join-rendezvous.js'
import { FrameReader } from './wire/frame-reader.js'
import { FrameWriter } from './wire/frame-writer.js'

/** Bytes read from a connection at once. */
const READ_BYTES = 512 * 1024
const MAX_HELLO_CHARACTERS = 200

/** Connections between ranks: `ring` only to the next rank, `direct` from each to all. */
export type Mode = 'ring' | 'direct'

/**
 * A rank's listening socket, where other ranks connect to receive data. Open it before joining, since joining announces
 * its port.
 */
export interface DataListener {
  readonly port: number
  /** The connection of `rank`, once it has sent the epoch's nonce. */
  readonly accept: (rank: number, nonce: string) => Promise<Socket>
  readonly close: () => void
}

/** Starts to listen on `host`, at a free port. */
export async function openDataListener(host: string): Promise<DataListener> {
  const sockets = new Set<Socket>()
  const greeted = new Map<string, Socket>()
  const awaited = new Map<string, (socket: Socket) => void>()
  const server: Server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {}) // a waiting caller sees the close
    let hello = ''
    const onData = (bytes: Buffer) => {
      hello += bytes.toString('latin1')
      if (hello.length > MAX_HELLO_CHARACTERS) return socket.destroy()
      if (!hello.endsWith('\n')) return undefined
      socket.off('data', onData)
      socket.resume()
      greeted.set(hello, socket)
      awaited.get(hello)?.(socket)
      return undefined
    }
    socket.on('data', onData)
  })
  await once(server.listen(0, host), 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    accept(rank, nonce) {
      const hello = formatHello(rank, nonce)
      const socket = greeted.get(hello)
      return socket ? Promise.resolve(socket) : new Promise((resolve) => awaited.set(hello, resolve))
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** Connections of one epoch, and how to end them. */
export interface OpenLinks extends Links {
  readonly fail: (error: Error) => void
  readonly close: () => void
}

/** The ranks to connect to, and callbacks. */
interface ConnectOptions {
  readonly welcome: Welcome
  readonly levels: Levels
  readonly listener: DataListener
  readonly codec: Codec
  readonly mode: Mode
  /** This rank's memory, which other ranks of the host read; undefined with one level. */
  readonly memory: HostMemory | undefined
  readonly onDown: (rank: number) => void
  /** Called with a rank that has yet to connect to this one, whenever it changes; undefined: all have connected. */
  readonly onAwaited: (rank: number | undefined) => void
  readonly signal: AbortSignal
}

/**
 * Connects to every rank that sends to this one and waits for every rank that this one sends to. The receiver dials,
 * because only a dialing socket can read into a buffer of its own.
 */
export async function connectLinks(options: ConnectOptions): Promise<OpenLinks> {
  const { welcome, levels, mode, memory } = options
  const { rank } = welcome
  const others = levels.host[0] === rank ? levels.network.filter((other) => other !== rank) : []
  const own = levels.network.indexOf(rank)
  const neighbour = (step: number) => levels.network.at((own + step) % levels.network.length)
  const sources = others.filter((other) => mode === 'direct' || other === neighbour(-1))
  const targets = others.filter((other) => mode === 'direct' || other === neighbour(1))
  const [first, ...rest] = levels.host
  const hostPeers = first === rank ? rest : [first!]
  const sockets = new LinkSockets(options)
  const memories: PeerMemory[] = []
  const dropAll = () => {
    sockets.close()
    for (const opened of memories.splice(0)) opened.close()
  }
  try {
    const readers = new Map(sources.map((peer) => [peer, sockets.read(peer)]))
    const hostReaders = new Map(
      hostPeers.map((peer) => {
        const { memory: path = '' } = welcome.peers[peer]!
        const opened = openPeerMemory(path, peer)
        memories.push(opened)
        return [peer, sockets.readMemory(peer, opened)]
      }),
    )
    const accepted = await sockets.acceptAll([...targets, ...hostPeers])
    const writers = new Map(targets.map((peer, at) => [peer, new FrameWriter(accepted[at]!)]))
    const hostSockets = accepted.slice(targets.length)
    const hostWriter = memory && hostPeers.length > 0 ? new MemoryWriter(memory, hostSockets) : undefined
    const all = [...readers.values(), ...writers.values(), ...hostReaders.values(), hostWriter]
    return {
      ...{ rank, levels, readers, writers, hostReaders, hostWriter },
      fail: (error) => {
        for (const link of all) link?.fail(error)
      },
      close: dropAll,
    }
  } catch (error) {
    dropAll()
    throw error
  }
}

/** The sockets of one rank's links. */
class LinkSockets {
  readonly #options: ConnectOptions
  readonly #sockets: Socket[] = []
  readonly #aborted: Promise<never>

  constructor(options: ConnectOptions) {
    this.#options = options
    const { signal } = options
    this.#aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    this.#aborted.catch(() => {})
  }

  /** Dials a rank that sends over the network. */
  read(peer: number): FrameReader {
    const reader = new FrameReader(this.#options.codec, peer, () => socket.resume())
    const socket = this.#dial(peer, (bytes) => reader.push(bytes))
    return reader
  }

  /** Dials a rank that sends through its memory: the socket carries headers one way and acknowledgements back. */
  readMemory(peer: number, memory: PeerMemory): MemoryReader {
    const acknowledge = () => void socket.write(ACKNOWLEDGEMENT)
    const reader = new MemoryReader(this.#options.codec, peer, { memory, acknowledge })
    const socket = this.#dial(peer, (bytes) => {
      reader.push(bytes)
      return true
    })
    return reader
  }

  /** Waits until all of these ranks have dialled this one. */
  async acceptAll(peers: readonly number[]): Promise<Socket[]> {
    const missing = new Set(peers)
    let awaited: number | undefined
    const tell = () => {
      const [first] = missing
      if (first !== awaited) this.#options.onAwaited(first)
      awaited = first
    }
    tell()
    const accept = async (peer: number) => {
      const socket = await this.#accept(peer)
      missing.delete(peer)
      tell()
      return socket
    }
    return await Promise.all(peers.map(accept))
  }

  async #accept(peer: number): Promise<Socket> {
    const { listener, welcome } = this.#options
    const socket = await Promise.race([listener.accept(peer, welcome.nonce), this.#aborted])
    this.#watch(socket, peer)
    return socket
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #dial(rank: number, callback: (bytes: Uint8Array) => boolean): Socket {
    const { welcome } = this.#options
    const { host, port } = welcome.peers[rank]!
    const buffer = Buffer.allocUnsafe(READ_BYTES)
    const onread = { buffer, callback: (bytes: number) => callback(buffer.subarray(0, bytes)) }
    const socket = connect({ host, port, noDelay: true, onread })
    this.#watch(socket, rank)
    socket.write(formatHello(welcome.rank, welcome.nonce))
    return socket
  }

  #watch(socket: Socket, rank: number): void {
    const { onDown } = this.#options
    this.#sockets.push(socket)
    socket.on('error', () => {})
    socket.on('close', () => onDown(rank))
    if (socket.destroyed) onDown(rank)
  }
}

/** Acknowledges that one frame was read from memory. */
const ACKNOWLEDGEMENT = Buffer.of(1)

function formatHello(rank: number, nonce: string): string {
  return `dsc-exchange/1 ${nonce} ${rank}\n`
}
