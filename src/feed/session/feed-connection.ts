import { once } from 'node:events'
import type { Socket } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import type { FailureCode } from '../../failure/failure-table.js'
import { connectToFeed } from './connect-to-feed.js'
import { formatSessionFrame, MESSAGE, readSessionFrames, type SessionFrame } from './wire.js'

/** How long a client waits until the feed has read its last message, in ms. */
const LEAVE_MS = 1000

/** The feed that a client connects to, and its timeout. */
export interface ConnectionOptions {
  readonly socketPath: string
  /** How long an awaited feed may be silent before it counts as gone, in ms. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** A client's end of the session protocol. */
export class FeedConnection {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  readonly #frames: SessionFrame[] = []
  #failure: unknown
  #wake = () => {}

  /** Connects to a feed. The first message shows whether one answers. */
  constructor(options: ConnectionOptions) {
    const { socketPath, signal } = options
    this.#options = options
    this.#socket = connectToFeed(socketPath)
    const frames = readSessionFrames('the feed', (frame) => void this.#frames.push(frame))
    const abort = () => this.#end(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    this.#socket.on('data', (chunk) => {
      try {
        frames.push(chunk)
        this.#wake()
      } catch (error) {
        this.#end(error)
      }
    })
    this.#socket.on('error', (cause) => this.#end(this.#gone(`is gone: ${cause.message}`)))
    this.#socket.on('close', () => {
      signal?.removeEventListener('abort', abort)
      this.#end(this.#gone('has ended'))
    })
    if (signal?.aborted) abort()
    this.#socket.unref() // a feed without readers does not keep the program alive
  }

  get isEnded(): boolean {
    return this.#failure !== undefined
  }

  send(type: number, fields: object): void {
    this.#socket.write(formatSessionFrame(type, fields))
  }

  /**
   * Returns the next message, except that notes become warnings of this process. Rejects with FEED_GONE when the feed
   * ends or is silent, or with the error that the feed reports.
   */
  async receive(): Promise<SessionFrame> {
    await this.#hear()
    const frame = this.#frames.shift()
    if (!frame) throw this.#failure
    if (frame.type !== MESSAGE.error && frame.type !== MESSAGE.note) return frame
    const { code, message, hint } = frame.fields as Record<string, string>
    if (frame.type === MESSAGE.note) {
      process.emitWarning(message!, { type: 'DscWarning' })
      return this.receive()
    }
    throw new DscError(code as FailureCode, message!, { hint })
  }

  /**
   * Hangs up, and resolves when the feed has read everything that was sent. The feed may be writing: to a socket that is
   * closed at once it could not, and would lose what it had not read yet, such as the times of the last steps.
   */
  async close(): Promise<void> {
    if (this.isEnded) return
    this.#failure = this.#gone('was left')
    this.#wake() // nobody waits for the feed any more, which may be slow
    const read = once(this.#socket, 'close', { signal: AbortSignal.timeout(LEAVE_MS) })
    this.#socket.ref().end()
    await read.catch(() => {}) // the feed does not answer
    this.#socket.destroy()
  }

  /** Waits for a message or the end. Messages sent before the end count, above all the last one. */
  async #hear(): Promise<void> {
    const { timeoutMs } = this.#options
    const silent = setTimeout(() => this.#end(this.#gone(`has sent nothing for ${timeoutMs} ms`)), timeoutMs)
    try {
      while (this.#frames.length === 0 && !this.isEnded)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    } finally {
      clearTimeout(silent)
    }
  }

  #end(error: unknown): void {
    this.#failure ??= error
    this.#socket.destroy()
    this.#wake()
  }

  #gone(what: string): DscError {
    const { socketPath } = this.#options
    return new DscError('FEED_GONE', `the feed on ${socketPath} ${what}`, {
      hint: `dsc feed serve <dataset> --socket ${socketPath}`,
    })
  }
}
