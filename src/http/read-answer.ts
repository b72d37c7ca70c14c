import type { Headers } from './answer-listener.js'
import type { HttpPool, HttpRequest } from './http-pool.js'

const FIRST_ROOM_BYTES = 16_384

/** A complete answer. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

/** Reusable memory for the bodies of successive answers: garbage bodies pile up by hundreds of MB. */
export class AnswerRoom {
  #buffer = Buffer.allocUnsafe(FIRST_ROOM_BYTES)
  #length = 0

  /** Discards its content. */
  clear(): void {
    this.#length = 0
  }

  /** Appends a copy of the chunk. */
  add(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    this.#buffer.set(chunk, this.#length)
    this.#length = needed
  }

  /** The content; the next answer in the same room overwrites it. */
  get body(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}

/** Most of an answer that is read where no more is expected, bytes: a page of 1,000 keys has 4 MB at most. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024

/** An answer that is longer than any that was asked for. */
class EndlessAnswerError extends Error {
  readonly code = 'ENDLESS_ANSWER'

  constructor(maxBytes: number) {
    super(`more than ${maxBytes / 1024 ** 2} MiB`)
  }
}

/**
 * Sends a request and reads its whole answer into memory: into `room`, else into new memory. Afterwards `progress`
 * shows whether an answer had begun. Rejects with the connection's error, or with the signal's reason.
 */
export function readAnswer(
  pool: HttpPool,
  request: HttpRequest,
  {
    signal,
    progress,
    room = new AnswerRoom(),
    maxBytes = MAX_ANSWER_BYTES,
  }: {
    readonly signal: AbortSignal | undefined
    readonly progress: { hasAnswer: boolean }
    readonly room?: AnswerRoom
    /** The answer is given up when it is longer. Default: 32 MiB. */
    readonly maxBytes?: number | undefined
  },
): Promise<Answer> {
  room.clear()
  return new Promise((resolve, reject) => {
    let [status, headers]: [number, Headers] = [0, {}]
    const control = pool.send(request, {
      onHead: (...head) => {
        progress.hasAnswer = true
        ;[status, headers] = head
      },
      onData: (chunk) => {
        if (room.body.length + chunk.length <= maxBytes) return room.add(chunk)
        signal?.removeEventListener('abort', stop)
        setImmediate(() => control.cancel())
        reject(new EndlessAnswerError(maxBytes))
      },
      onEnd: () => {
        signal?.removeEventListener('abort', stop)
        resolve({ status, headers, body: room.body })
      },
      onError: (error) => {
        signal?.removeEventListener('abort', stop)
        reject(error)
      },
    })
    const stop = () => {
      control.cancel()
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
  })
}
