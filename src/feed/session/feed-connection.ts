import { connect } from 'node:net'
import { DscError, type FailureCode } from '../../failure/dsc-error.js'
import { createFrameReader, type Frame, formatFrame, formatJsonFrame, MESSAGE } from './wire.js'

/** A client's end of the session protocol. */
export interface FeedConnection {
  readonly isEnded: boolean
  sendJson(type: number, value: unknown): void
  sendNumber(type: number, value: number): void
  /** The next message. Rejects with FEED_GONE when the feed ends or is silent, or with what the feed says is wrong. */
  receive(): Promise<Frame>
  close(): void
}

export interface ConnectionOptions {
  readonly socketPath: string
  /** A feed that is silent for so long while it is waited for counts as gone, milliseconds. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Dials a feed. Whether one answers shows with the first message. */
export function dialFeed({ socketPath, timeoutMs, signal }: ConnectionOptions): FeedConnection {
  const socket = connect(socketPath)
  const readFrames = createFrameReader()
  const frames: Frame[] = []
  let failure: unknown
  let wake = () => {}
  const end = (error: unknown) => {
    failure ??= error
    socket.destroy()
    wake()
  }
  const gone = (what: string) =>
    new DscError('FEED_GONE', `the feed on ${socketPath} ${what}`, {
      hint: `dsc feed serve <dataset> --socket ${socketPath}`,
    })
  const abort = () => end(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  socket.on('data', (chunk) => {
    try {
      frames.push(...readFrames(chunk))
      wake()
    } catch (error) {
      end(error)
    }
  })
  socket.on('error', (cause) => end(gone(`is gone: ${cause.message}`)))
  socket.on('close', () => {
    signal?.removeEventListener('abort', abort)
    end(gone('has ended'))
  })
  socket.unref() // a feed that nobody reads from does not keep the program alive
  return {
    get isEnded() {
      return failure !== undefined
    },
    sendJson: (type, value) => void socket.write(formatJsonFrame(type, value)),
    sendNumber(type, value) {
      const payload = Buffer.alloc(4)
      payload.writeUInt32LE(value)
      socket.write(formatFrame(type, payload))
    },
    async receive() {
      const silent = setTimeout(() => end(gone(`has sent nothing for ${timeoutMs} ms`)), timeoutMs)
      try {
        // What it sent before it ended counts, its last words above all.
        while (frames.length === 0 && failure === undefined)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      } finally {
        clearTimeout(silent)
      }
      const frame = frames.shift()
      if (!frame) throw failure
      if (frame.type !== MESSAGE.error) return frame
      const { code, message, hint } = JSON.parse(frame.payload.toString()) as Record<string, string>
      throw new DscError(code as FailureCode, message!, { hint })
    },
    close: () => end(gone('was left')),
  }
}
