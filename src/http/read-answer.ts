import type { Headers } from './answer-listener.js'
import type { HttpPool, HttpRequest } from './http-pool.js'

/** A whole answer. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

/**
 * Sends a request and reads its whole answer into memory. `progress` tells afterwards whether an answer had begun.
 * Rejects with what the connection failed with, or with the reason of the signal.
 */
export function readAnswer(
  pool: HttpPool,
  request: HttpRequest,
  {
    signal,
    progress,
  }: { readonly signal: AbortSignal | undefined; readonly progress: { hasAnswer: boolean } },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let [status, headers]: [number, Headers] = [0, {}]
    const chunks: Buffer[] = []
    const control = pool.send(request, {
      onHead: (...head) => {
        progress.hasAnswer = true
        ;[status, headers] = head
      },
      onData: (chunk) => void chunks.push(Buffer.from(chunk)),
      onEnd: () => {
        signal?.removeEventListener('abort', stop)
        resolve({ status, headers, body: Buffer.concat(chunks) })
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
