import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext } from 'node:tls'
import { BLOCK_BYTES } from '../platform/block-bytes.js'
import type { AnswerListener } from './answer-listener.js'
import { AnswerParser } from './answer-parser.js'
import type { HttpProxy } from './find-proxy.js'
import { GatheredReads } from './gathered-reads.js'
import { HttpFailure } from './http-failure.js'
import { connectToProxy, openTunnel } from './open-tunnel.js'

/** A request in the form that a connection sends. */
interface SentRequest {
  /** Includes the final empty line. */
  readonly head: string
  readonly method: 'GET' | 'HEAD'
  readonly stallTimeoutMs: number
}

/** The server of a connection, and the route to it. */
export interface ConnectionTarget {
  /** Undefined: no encryption. */
  readonly tls:
    | ({ readonly secureContext?: SecureContext } & Pick<ConnectionOptions, 'checkServerIdentity'>)
    | undefined
  readonly hostname: string
  readonly port: number
  readonly connectTimeoutMs: number
  /** Looks up `hostname`. Default: as the system does. */
  readonly lookup?: LookupFunction | undefined
  readonly proxy: HttpProxy | undefined
  /** Holds the bytes of each read until the next one; undefined: in this thread's memory. */
  readonly readBuffer: Buffer | undefined
}

/**
 * Bytes per read, which the disk gets in one write: enough to make the cost of a call negligible, few enough to stay in
 * the processor's cache. With a quarter of it, 4 objects of 1 GiB take a sixth more processor time.
 */
export const READ_BYTES = 1024 * 1024
let threadBuffer: Buffer | undefined

/**
 * One keep-alive HTTP/1.1 connection for one request without body at a time. Reuses one buffer for every read, and
 * hands bytes on from there: no copy, no garbage.
 */
export class HttpConnection {
  /** Completion time of the last answer, ms on the clock of `performance.now`. */
  idleSinceMs = 0
  #socket: Socket
  /** Data to send once the tunnel through the proxy is open; undefined: no tunnel is pending. */
  #outbox: string[] | undefined
  readonly #onIdle: (connection: HttpConnection) => void
  readonly #onClose: (connection: HttpConnection) => void
  /** Undefined: each read is handed on at once. */
  #gathered: GatheredReads | undefined
  #parser: AnswerParser | undefined
  #listener: AnswerListener | undefined
  #answers = 0
  #hasBytes = false
  #isPaused = false
  #isClosed = false
  #stallTimeoutMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    target: ConnectionTarget,
    events: {
      readonly onIdle: (connection: HttpConnection) => void
      readonly onClose: (connection: HttpConnection) => void
    },
  ) {
    this.#onIdle = events.onIdle
    this.#onClose = events.onClose
    const connectTimer = setTimeout(() => {
      const where = target.proxy ? `the proxy ${target.proxy.url}` : `${target.hostname}:${target.port}`
      const text = `no connection to ${where} in ${target.connectTimeoutMs} ms`
      this.#fail(new HttpFailure('HTTP_CONNECT_TIMEOUT', text))
    }, target.connectTimeoutMs)
    const connected = () => clearTimeout(connectTimer)
    const { proxy } = target
    if (proxy === undefined) {
      this.#socket = this.#connect(target)
      this.#socket.once(target.tls ? 'secureConnect' : 'connect', connected)
    } else {
      this.#socket = connectToProxy(proxy)
      if (target.tls) this.#outbox = []
      this.#socket.once(proxy.isTls ? 'secureConnect' : 'connect', () => {
        if (target.tls) void this.#goThrough(proxy, target).finally(connected)
        else connected()
      })
      if (!target.tls) this.#socket.on('data', (bytes: Buffer) => void this.#read(bytes))
    }
    this.#listen(this.#socket)
    this.#socket.once('close', connected)
  }

  /**
   * Whether the server may have closed it while it was idle: then a request that fails before any byte may be resent.
   */
  get wasUsed(): boolean {
    return this.#answers > 0
  }

  /** Whether the current answer has begun. */
  get hasAnswer(): boolean {
    return this.#hasBytes
  }

  /** Sends a request. It fails after `stallTimeoutMs` without a byte. */
  send(request: SentRequest, listener: AnswerListener): void {
    this.#listener = listener
    this.#hasBytes = false
    this.#parser = new AnswerParser(request.method, listener)
    this.#watch(request.stallTimeoutMs)
    this.#socket.ref()
    if (this.#outbox) this.#outbox.push(request.head)
    else this.#socket.write(request.head, 'latin1')
  }

  /**
   * Stops reading, so that the server slows down. A pause does not count as a stall; an answer that ends during one
   * completes after it.
   */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    if (this.#isClosed) return
    this.#isPaused = false
    this.#timer?.refresh()
    this.#socket.resume()
    if (this.#parser?.isComplete) this.#complete(this.#parser.mayKeepAlive ? 'keep' : 'close')
  }

  /** Aborts the current request and the connection; the listener gets no more calls. */
  close(): void {
    this.#listener = undefined
    this.#shut()
  }

  /** Ends the connection and fails its current request. */
  abandon(error: Error): void {
    this.#fail(error)
  }

  #connect(target: ConnectionTarget): Socket {
    const buffer = target.readBuffer ?? findThreadBuffer()
    if (target.tls) this.#gathered = new GatheredReads((bytes) => void this.#read(bytes))
    const options = {
      host: target.hostname,
      port: target.port,
      noDelay: true,
      autoSelectFamily: true,
      lookup: target.lookup,
      onread: {
        buffer: () => this.#bufferForRead(buffer),
        callback: (bytes: number, into: Buffer) =>
          this.#gathered?.add(bytes, this.#parser?.leftBytes ?? 0) || this.#read(into.subarray(0, bytes)),
      },
    }
    return target.tls
      ? connectTls({ ...options, ...describeTls(target) } as ConnectionOptions)
      : connectPlain(options)
  }

  /** Opens a tunnel through the proxy, and encrypts its content. */
  async #goThrough(proxy: HttpProxy, target: ConnectionTarget): Promise<void> {
    const outer = this.#socket
    try {
      await openTunnel(outer, proxy, target)
    } catch (error) {
      this.#fail(error as Error)
      return
    }
    if (this.#isClosed) return
    const inner = connectTls({ socket: outer, ...describeTls(target) })
    this.#socket = inner
    this.#listen(inner)
    inner.on('data', (bytes: Buffer) => void this.#read(bytes))
    for (const head of this.#outbox ?? []) inner.write(head, 'latin1')
    this.#outbox = undefined
  }

  #listen(socket: Socket): void {
    socket.on('error', (error) => {
      this.#gathered?.flush()
      this.#fail(error)
    })
    socket.on('end', () => this.#end())
    socket.on('close', () => this.#end())
  }

  /**
   * The memory that the listener has for the answer; otherwise the part of the buffer with which the next read ends at a
   * boundary of blocks, if it fills it.
   */
  #bufferForRead(buffer: Buffer): Buffer {
    const room = this.#gathered ? this.#gathered.findRoom(() => this.#findRoom()) : this.#findRoom()
    if (room) return room
    const beyond = (this.#parser?.bodyBytes ?? 0) % BLOCK_BYTES
    return beyond === 0 ? buffer : buffer.subarray(0, buffer.length - beyond)
  }

  #findRoom(): Buffer | undefined {
    return this.#parser?.leftBytes ? this.#listener?.findRoom?.() : undefined
  }

  #read(bytes: Uint8Array): boolean {
    const parser = this.#parser
    if (parser === undefined || this.#listener === undefined) {
      // Unexpected bytes.
      this.close()
      return false
    }
    this.#hasBytes = true
    this.#timer?.refresh()
    try {
      parser.take(bytes)
    } catch (error) {
      this.#fail(error as Error)
      return false
    }
    if (parser.isComplete && !this.#isPaused) this.#complete(parser.mayKeepAlive ? 'keep' : 'close')
    return true
  }

  #complete(then: 'keep' | 'close'): void {
    const listener = this.#listener
    this.#listener = undefined
    this.#parser = undefined
    this.#answers += 1
    if (then === 'keep' && !this.#isClosed) {
      this.idleSinceMs = performance.now()
      this.#socket.unref()
      this.#onIdle(this)
    } else this.#shut()
    listener?.onEnd()
  }

  /** The other side closed its end. */
  #end(): void {
    this.#gathered?.flush()
    if (this.#isClosed) return // by this side
    if (this.#parser?.isUntilClose || this.#parser?.isComplete) this.#complete('close')
    else this.#fail(new HttpFailure('HTTP_CLOSED', 'the other side closed the connection'))
  }

  #fail(error: Error): void {
    const listener = this.#listener
    this.#listener = undefined
    this.#shut()
    listener?.onError(error)
  }

  #shut(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#gathered?.drop()
    this.#socket.destroy()
    this.#onClose(this)
  }

  #watch(stallTimeoutMs: number): void {
    if (this.#timer && this.#stallTimeoutMs === stallTimeoutMs) {
      this.#timer.refresh()
      return
    }
    clearTimeout(this.#timer)
    this.#stallTimeoutMs = stallTimeoutMs
    this.#timer = setTimeout(() => {
      if (this.#isPaused) this.#timer?.refresh()
      else if (this.#listener) this.#fail(new HttpFailure('HTTP_STALLED', `no byte for ${stallTimeoutMs} ms`))
    }, stallTimeoutMs)
    this.#timer.unref()
  }
}

/** Shared by all connections of a thread: on POSIX a read fills it and is handled before the next read begins. */
function findThreadBuffer(): Buffer {
  threadBuffer ??= Buffer.allocUnsafeSlow(READ_BYTES)
  return threadBuffer
}

function describeTls(target: ConnectionTarget): ConnectionOptions {
  return {
    ...target.tls,
    host: target.hostname, // for checking the certificate
    servername: isIP(target.hostname) === 0 ? target.hostname : '',
    ALPNProtocols: ['http/1.1'],
  }
}
