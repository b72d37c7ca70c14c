import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext } from 'node:tls'
import { AnswerParser } from './answer-parser.js'

/** Takes what comes in answer to one request. Exactly one of `onEnd` and `onError` is called, last. */
export interface AnswerListener {
  onHead(status: number, headers: Headers): void
  /** `chunk` is valid only during the call: its memory takes the next bytes. */
  onData(chunk: Uint8Array): void
  onEnd(): void
  onError(error: Error): void
}

/** Header values by lower-case name; values of a repeated name are joined by `, `. */
export type Headers = Readonly<Record<string, string>>

export type HttpFailureCode = 'HTTP_STALLED' | 'HTTP_CLOSED' | 'HTTP_MALFORMED' | 'HTTP_CONNECT_TIMEOUT'

/** A connection that failed in a way the operating system has no code for. */
class HttpFailure extends Error {
  readonly code: HttpFailureCode

  constructor(code: HttpFailureCode, message: string) {
    super(message)
    this.code = code
  }
}

export interface ConnectionTarget {
  /** Undefined: no encryption. */
  readonly tls: { readonly secureContext?: SecureContext } | undefined
  readonly hostname: string
  readonly port: number
  readonly connectTimeoutMs: number
}

/** Bytes read at once: enough that a system call costs nothing beside its bytes, few enough to stay in the cache. */
const READ_BYTES = 256 * 1024
// One for all connections of a thread: on POSIX a read fills it and is answered before the next read begins.
let readBuffer: Buffer | undefined

/**
 * One keep-alive HTTP/1.1 connection that carries one request without body at a time. Bytes are read into one
 * buffer that is used again and again, and handed on from there: no copy, no garbage.
 */
export class HttpConnection {
  /** When the last answer was complete, ms on the clock of `performance.now`. */
  idleSinceMs = 0
  readonly #socket: Socket
  readonly #onIdle: (connection: HttpConnection) => void
  readonly #onClose: (connection: HttpConnection) => void
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
    readBuffer ??= Buffer.allocUnsafeSlow(READ_BYTES)
    const options = {
      host: target.hostname,
      port: target.port,
      noDelay: true,
      autoSelectFamily: true,
      onread: {
        buffer: readBuffer,
        callback: (bytes: number, buffer: Uint8Array) => this.#read(buffer.subarray(0, bytes)),
      },
    }
    this.#socket = target.tls
      ? connectTls({
          ...options,
          ...target.tls,
          servername: isIP(target.hostname) === 0 ? target.hostname : '',
          ALPNProtocols: ['http/1.1'],
        } as ConnectionOptions)
      : connectPlain(options)
    const connectTimer = setTimeout(() => {
      const where = `${target.hostname}:${target.port}`
      this.#fail(
        new HttpFailure('HTTP_CONNECT_TIMEOUT', `no connection to ${where} in ${target.connectTimeoutMs} ms`),
      )
    }, target.connectTimeoutMs)
    this.#socket.once(target.tls ? 'secureConnect' : 'connect', () => clearTimeout(connectTimer))
    this.#socket.on('error', (error) => this.#fail(error))
    this.#socket.on('end', () => this.#end())
    this.#socket.on('close', () => {
      clearTimeout(connectTimer)
      this.#end()
    })
  }

  /** Whether a server may have closed it while it was idle: a request that fails before any byte may be sent again. */
  get wasUsed(): boolean {
    return this.#answers > 0
  }

  /** Whether the current answer has begun. */
  get hasAnswer(): boolean {
    return this.#hasBytes
  }

  /** Sends a request head, complete with its empty line. No byte for `stallTimeoutMs` fails it. */
  send(head: string, isHead: boolean, stallTimeoutMs: number, listener: AnswerListener): void {
    this.#listener = listener
    this.#hasBytes = false
    this.#parser = new AnswerParser(isHead, listener)
    this.#watch(stallTimeoutMs)
    this.#socket.ref()
    this.#socket.write(head, 'latin1')
  }

  /** Stops reading, so that the server feels it. A pause is no stall; an answer that ends in one is complete after it. */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    if (this.#isClosed) return
    this.#isPaused = false
    this.#timer?.refresh()
    this.#socket.resume()
    if (this.#parser?.isComplete) this.#complete(this.#parser.mayKeepAlive)
  }

  /** Gives up the current request, of which the listener hears no more, and the connection with it. */
  close(): void {
    this.#listener = undefined
    this.#shut()
  }

  /** Ends the connection and fails the request it carries. */
  abandon(error: Error): void {
    this.#fail(error)
  }

  #read(bytes: Uint8Array): boolean {
    const parser = this.#parser
    if (parser === undefined || this.#listener === undefined) {
      // Bytes that nobody asked for.
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
    if (parser.isComplete && !this.#isPaused) this.#complete(parser.mayKeepAlive)
    return true
  }

  #complete(mayKeepAlive: boolean): void {
    const listener = this.#listener
    this.#listener = undefined
    this.#parser = undefined
    this.#answers += 1
    if (mayKeepAlive && !this.#isClosed) {
      this.idleSinceMs = performance.now()
      this.#socket.unref()
      this.#onIdle(this)
    } else this.#shut()
    listener?.onEnd()
  }

  /** The other side sends no more. */
  #end(): void {
    if (this.#parser?.isUntilClose || this.#parser?.isComplete) this.#complete(false)
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
