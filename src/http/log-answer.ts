import { formatElapsed, log } from '../log/log.js'
import type { AnswerListener } from './answer-listener.js'

/** Listens as `listener` does, and logs what became of the request `what`, with its time and bytes. */
export function logAnswer(what: string, listener: AnswerListener): AnswerListener {
  const beganMs = performance.now()
  let status = 0
  let bytes = 0
  return {
    onHead(found, headers) {
      status = found
      listener.onHead(found, headers)
    },
    onData(chunk) {
      bytes += chunk.length
      listener.onData(chunk)
    },
    onEnd() {
      log('verbose', `${what}: ${status}, ${bytes} bytes in ${formatElapsed(beganMs)}`)
      listener.onEnd()
    },
    onError(error) {
      log('verbose', `${what}: ${error.message} after ${bytes} bytes and ${formatElapsed(beganMs)}`)
      listener.onError(error)
    },
  }
}
