import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Codec } from '../half/codec.js'
import type { Links } from './links.js'
import type { Welcome } from './rendezvous/join-rendezvous.js'
import { FrameReader } from './wire/frame-reader.js'
import { FrameWriter } from './wire/frame-writer.js'

/** Bytes taken from a connection at once. */
const READ_BYTES = 512 * 1024
const MAX_HELLO_CHARACTERS = 200

/** Who sends to whom: `ring` only to the next rank, `direct` everybody to everybody. */
export type Mode = 'ring' | 'direct'

/** A rank's ear: other ranks connect here to be sent data. Open before joining, since its port is told to all. */
export interface DataListener {
  readonly port: number
  /** The connection of `rank`, once it has said the epoch's secret word. */
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
    socket.on('error', () => {}) // whoever waits for it sees the close
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, resolve)
  })
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

/**
 * Connects to every rank that sends to this one and waits for every rank that this one sends to.
 * The receiver dials, because only a dialling socket can read into a buffer of its own.
 */
export async function connectLinks(options: {
  readonly welcome: Welcome
  readonly listener: DataListener
  readonly codec: Codec
  readonly mode: Mode
  readonly onDown: (rank: number) => void
  readonly signal: AbortSignal
}): Promise<OpenLinks> {
  const { welcome, listener, codec, mode, onDown, signal } = options
  const { rank, nonce, peers } = welcome
  const ranks = peers.length
  const others = peers.filter((peer) => peer.rank !== rank)
  const sources = others.filter((peer) => mode === 'direct' || (peer.rank + 1) % ranks === rank)
  const targets = others.filter((peer) => mode === 'direct' || peer.rank === (rank + 1) % ranks)
  const sockets: Socket[] = []
  const readers = new Map<number, FrameReader>()
  const writers = new Map<number, FrameWriter>()
  const watch = (socket: Socket, peer: number) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('close', () => onDown(peer))
    if (socket.destroyed) onDown(peer)
  }
  for (const peer of sources) {
    let socket: Socket | undefined
    const reader = new FrameReader(codec, peer.rank, () => socket?.resume())
    const buffer = Buffer.allocUnsafe(READ_BYTES)
    const callback = (bytes: number) => reader.push(buffer.subarray(0, bytes))
    socket = connect({ host: peer.host, port: peer.port, noDelay: true, onread: { buffer, callback } })
    watch(socket, peer.rank)
    socket.write(formatHello(rank, nonce))
    readers.set(peer.rank, reader)
  }
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const accepted = targets.map(async (peer) => {
    const socket = await Promise.race([listener.accept(peer.rank, nonce), aborted])
    watch(socket, peer.rank)
    writers.set(peer.rank, new FrameWriter(socket))
  })
  aborted.catch(() => {})
  try {
    await Promise.all(accepted)
  } catch (error) {
    for (const socket of sockets) socket.destroy()
    throw error
  }
  return {
    rank,
    ranks,
    readers,
    writers,
    fail(error) {
      for (const link of [...readers.values(), ...writers.values()]) link.fail(error)
    },
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

function formatHello(rank: number, nonce: string): string {
  return `dsc-exchange/1 ${nonce} ${rank}\n`
}
