import type { Agent, IncomingMessage } from 'node:http'
import type { ConnectionOptions } from 'node:tls'
import { formatElapsed, log } from '../log/log.js'

// Imported as an ES module, node:http would evaluate all its exports, including the browser's fetch and WebSocket: 50
// ms at every start of a program that may ask an agent.
const { request: requestPlain } = process.getBuiltinModule('node:http')
const { request: requestTls } = process.getBuiltinModule('node:https')

/** A request outside the hot path; HttpPool reads stores and peers. */
export interface Question {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | undefined
  /** The Unix socket at which the server listens; the host of the URL is ignored then. */
  readonly socketPath?: string
  readonly token: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | readonly Uint8Array[] | undefined
  /** Certificates (PEM) of the authorities for the server's certificate; undefined = those that Node.js trusts. */
  readonly ca?: string | undefined
  /** Whom a certificate of those authorities may name. Default: the host of the URL. */
  readonly checkServerIdentity?: ConnectionOptions['checkServerIdentity']
  readonly connectTimeoutMs: number
  /** How long the server may send no byte before the request or its answer fails. */
  readonly silenceMs: number
  readonly signal: AbortSignal | undefined
  /** Keeps connections for further requests. Default: each has its own. */
  readonly agent?: Agent | undefined
}

/** The server did not take the connection in time, or has sent nothing for too long. */
export class NoAnswer extends Error {
  readonly code: 'NO_CONNECTION' | 'SILENT'

  constructor(code: NoAnswer['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Sends one request. Read the answer's stream to its end, or destroy it. */
export function askOnce(url: string, question: Question): Promise<IncomingMessage> {
  const {
    method = 'GET',
    socketPath,
    token,
    headers,
    body,
    ca,
    checkServerIdentity,
    connectTimeoutMs,
    silenceMs,
    signal,
    agent = false,
  } = question
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestTls : requestPlain
    const request = send(url, {
      method,
      socketPath,
      agent,
      headers: {
        ...headers,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(Array.isArray(body) && { 'content-length': body.reduce((sum, part) => sum + part.length, 0) }),
      },
      ca,
      ...(checkServerIdentity && { checkServerIdentity }),
      signal,
    })
    let answer: IncomingMessage | undefined
    const connecting = setTimeout(
      () => request.destroy(new NoAnswer('NO_CONNECTION', `no connection in ${connectTimeoutMs} ms`)),
      connectTimeoutMs,
    )
    request.once('socket', (socket) => {
      if (request.reusedSocket) clearTimeout(connecting)
      else socket.once(send === requestTls ? 'secureConnect' : 'connect', () => clearTimeout(connecting))
    })
    request.setTimeout(silenceMs, () =>
      (answer ?? request).destroy(new NoAnswer('SILENT', `no byte for ${silenceMs / 1000} s`)),
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
    if (typeof body === 'string') request.end(body)
    else {
      for (const part of body ?? []) request.write(part)
      request.end()
    }
  })
}
