import type { IncomingMessage } from 'node:http'
import { formatElapsed, log } from '../log/log.js'

// Imported as an ES module, node:http would evaluate all its exports, including the browser's fetch and WebSocket: 50
// ms at every start of a program that may ask an agent.
const { request: requestPlain } = process.getBuiltinModule('node:http')
const { request: requestTls } = process.getBuiltinModule('node:https')

/** A request to an agent; too rare to keep connections for. */
export interface Question {
  readonly method?: 'GET' | 'POST'
  readonly token: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Certificates (PEM) of the authorities for the server's certificate; undefined = those that Node.js trusts. */
  readonly ca: string | undefined
  readonly connectTimeoutMs: number
  /** How long the server may send no byte before the request or its answer fails. */
  readonly silenceMs: number
  readonly signal: AbortSignal | undefined
}

/** Sends one request over its own connection. Read the answer's stream to its end, or destroy it. */
export function askOnce(url: string, question: Question): Promise<IncomingMessage> {
  const { method = 'GET', token, headers, body, ca, connectTimeoutMs, silenceMs, signal } = question
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestTls : requestPlain
    const request = send(url, {
      method,
      agent: false,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ca,
      signal,
    })
    let answer: IncomingMessage | undefined
    const connecting = setTimeout(
      () => request.destroy(new Error(`no connection in ${connectTimeoutMs} ms`)),
      connectTimeoutMs,
    )
    request.once('socket', (socket) =>
      socket.once(send === requestTls ? 'secureConnect' : 'connect', () => clearTimeout(connecting)),
    )
    request.setTimeout(silenceMs, () =>
      (answer ?? request).destroy(new Error(`no byte for ${silenceMs / 1000} s`)),
    )
    request.once('response', (message) => {
      answer = message
      log('verbose', `${method} ${url}: ${message.statusCode} in ${formatElapsed(beganMs)}`)
      resolve(message)
    })
    request.on('error', (error) => {
      log('verbose', `${method} ${url}: ${error.message} after ${formatElapsed(beganMs)}`)
      reject(error)
    })
    request.once('close', () => clearTimeout(connecting))
    request.end(body)
  })
}
