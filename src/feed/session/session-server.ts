import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { openOrClose } from '../../failure/closers.js'
import type { FedTime } from '../../model/fed-time.js'
import type { FeedEngine } from '../engine/feed-engine.js'
import type { HeadspaceProbe } from './headspace.js'
import { listenOnSocket } from './listen-on-socket.js'
import { ServedRanks } from './served-ranks.js'
import { Session, type SessionHost } from './session.js'

/** The feed to serve, and the socket to serve it on. */
export interface SessionServerOptions {
  readonly engine: FeedEngine
  /** Notes for the first client that is served. Default: none. */
  readonly notes?: readonly string[]
  /** Unix socket to listen on; at most 107 bytes. */
  readonly socketPath: string
  /** Fills released samples with 0xDB, which exposes clients that still read them. */
  readonly isPoisoning?: boolean
  /** Called with the number of connections whenever a client connects or leaves. */
  readonly onClients?: (count: number) => void
  readonly onStop?: () => void
  /** Hands out cached batches after a while and measures the pace (`dsc feed headspace`). */
  readonly probe?: HeadspaceProbe
}

/** Start of an HTTP request. No frame starts so: these bytes would announce one of 0.5 GB. */
const HTTP_GET = 'GET '
/** The first ends the turn of the event loop that is under way, the second has read every socket. */
const TURNS_TO_READ = 2

/** A feed that clients of this machine can connect to. */
export class SessionServer {
  readonly socketPath: string
  readonly #options: SessionServerOptions
  readonly #host: SessionHost
  readonly #tableFd: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(options: SessionServerOptions) {
    const { engine } = options
    this.socketPath = options.socketPath
    this.#options = options
    this.#tableFd = shareBytes(engine.table.bytes)
    const notes = [...(options.notes ?? [])]
    this.#host = {
      engine,
      takeNotes: () => [...notes.splice(0), ...engine.source.takeNotes()],
      ranks: new ServedRanks(engine),
      tablePath: `/proc/${process.pid}/fd/${this.#tableFd}`,
      isPoisoning: options.isPoisoning ?? false,
      stop: () => options.onStop?.(),
      probe: options.probe,
    }
    this.#server = createServer((socket) => this.#accept(socket))
  }

  /** Starts listening. */
  static async open(options: SessionServerOptions): Promise<SessionServer> {
    return openOrClose(async (closers) => {
      const server = new SessionServer(options)
      closers.add(() => closeSync(server.#tableFd))
      await listenOnSocket(server.#server, options.socketPath)
      return server
    })
  }

  /** The state of the feed as Prometheus text. */
  statusText(): string {
    return this.#host.ranks.statusText()
  }

  /** How its trainers spent their time since the last call; undefined if none has told. */
  takeTime(): FedTime | undefined {
    return this.#host.ranks.times.take()
  }

  /** Ends all sessions, after reading what their trainers have sent until now, such as the times of the last steps. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (let turns = 0; turns < TURNS_TO_READ; turns++) await setImmediate()
    for (const socket of this.#sockets) socket.destroy()
    await closed
    closeSync(this.#tableFd)
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    this.#options.onClients?.(this.#sockets.size)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#options.onClients?.(this.#sockets.size)
    })
    const session = new Session(socket, this.#host)
    socket.once('data', (chunk: Buffer) => {
      if (chunk.subarray(0, HTTP_GET.length).toString('latin1') === HTTP_GET) return this.#answerHttp(socket)
      session.take(chunk)
      socket.on('data', (next: Buffer) => session.take(next))
    })
  }

  /** Answers Prometheus (through a proxy, as this is a unix socket) and `curl --unix-socket`, which use HTTP. */
  #answerHttp(socket: Socket): void {
    socket.on('data', () => {}) // the rest of the request
    const head = 'HTTP/1.0 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\n\r\n'
    socket.end(head + this.statusText())
  }
}

/** Writes `bytes` to an unnamed file for clients to map. */
function shareBytes(bytes: Uint8Array): number {
  const path = join(tmpdir(), `dsc-samples-${process.pid}-${process.hrtime.bigint()}`)
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, Math.min(1 << 24, bytes.length - at))
  return fd
}
