import http from 'node:http'
import { listenLocally } from './listen-locally.js'

/** A fault in a request. Bytes count within the body of the answer. */
export type Fault =
  | { readonly kind: 'reset'; readonly afterBytes?: number }
  | {
      readonly kind: 'status'
      readonly status: number
      readonly code: string
      readonly retryAfterSeconds?: number
    }
  | { readonly kind: 'truncate'; readonly afterBytes: number }
  | { readonly kind: 'flip'; readonly atByte: number }
  /** Sends nothing after this many bytes; -1 = not even a head. The connection stays open. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** Adds or replaces headers of the answer; null removes one. */
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string | null>> }
  /** Sends the range with status 200. */
  | { readonly kind: 'call-it-200' }
  /** Sends the whole object, ignoring the requested range. */
  | { readonly kind: 'ignore-range' }
  /** Answers nothing that is HTTP, or with status 200 and a body that means nothing. */
  | { readonly kind: 'garbage'; readonly of: 'answer' | 'body' }
  /** Slows down the body. */
  | { readonly kind: 'throttle'; readonly bytesPerSecond: number }

/** The requests that a fault affects. */
export interface FaultRule {
  /** Regular expression over `GET /bucket/key?query bytes=0-99` (method, URL as sent, range if any). */
  readonly match: string
  readonly fault: Fault
  /** Matching requests to pass before the first affected one. Default 0. */
  readonly skip?: number
  /** Number of affected requests. Default: all. */
  readonly times?: number
}

/** A request that passed through, in the form that `match` sees. */
export interface SeenRequest {
  readonly line: string
  readonly headers: http.IncomingHttpHeaders
  readonly atMs: number
  /** Status sent to the client; 0 before the head was sent. */
  status: number
  /** Body bytes sent to the client. */
  sentBytes: number
}

/** A proxy in front of an S3 server that counts requests and injects faults. */
export interface FaultProxy {
  readonly endpoint: string
  readonly requests: readonly SeenRequest[]
  /** Number of requests whose line matches. */
  count(match: RegExp): number
  readonly sentBytes: number
  setRules(rules: readonly FaultRule[]): void
  /** Called before a matching request is passed on; for actions between two requests. */
  onRequest(listener: (line: string) => Promise<void> | void): void
  /** Forgets the requests seen so far. */
  forget(): void
  close(): Promise<void>
}

/** Starts a proxy on a free port of loopback. `target` is the server's `http://host:port`. */
export async function startFaultProxy(target: string, rules: readonly FaultRule[] = []): Promise<FaultProxy> {
  let active = rules.map((rule) => ({ rule, seen: 0, pattern: new RegExp(rule.match) }))
  const requests: SeenRequest[] = []
  const listeners: ((line: string) => Promise<void> | void)[] = []
  const agent = new http.Agent({ keepAlive: true })
  const upstream = new Set<http.ClientRequest>()
  const targetUrl = new URL(target)

  const findFault = (line: string): Fault | undefined => {
    for (const entry of active) {
      if (!entry.pattern.test(line)) continue
      const index = entry.seen++ - (entry.rule.skip ?? 0)
      if (index >= 0 && index < (entry.rule.times ?? Number.POSITIVE_INFINITY)) return entry.rule.fault
    }
    return undefined
  }

  const server = http.createServer((request, response) => {
    const line = [request.method, request.url, request.headers.range].filter(Boolean).join(' ')
    const seen: SeenRequest = {
      line,
      headers: request.headers,
      atMs: performance.now(),
      status: 0,
      sentBytes: 0,
    }
    requests.push(seen)
    void (async () => {
      for (const listener of listeners) await listener(line)
      const fault = findFault(line)
      if (fault?.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.delayMs))
      if (fault?.kind === 'status') return answer(response, seen, fault)
      if (fault?.kind === 'garbage') {
        if (fault.of === 'answer') return request.socket.end('\u0000garbage\r\n\r\n')
        seen.status = 200
        return response.end('\u0000garbage')
      }
      if (fault?.kind === 'reset' && fault.afterBytes === undefined) return request.socket.resetAndDestroy()
      if (fault?.kind === 'stall' && fault.afterBytes < 0) return
      if (response.destroyed) return // the client has gone away
      const passed = http.request(
        {
          agent,
          host: targetUrl.hostname,
          port: targetUrl.port,
          method: request.method,
          path: request.url,
          headers: fault?.kind === 'ignore-range' ? withoutRange(request.rawHeaders) : request.rawHeaders,
          setHost: false,
        },
        (found) => pass(found, response, seen, fault),
      )
      upstream.add(passed)
      passed.on('close', () => upstream.delete(passed))
      passed.on('error', () => request.socket.destroy())
      response.on('close', () => passed.destroy())
      request.pipe(passed)
    })()
  })
  const port = await listenLocally(server)
  return {
    endpoint: `http://127.0.0.1:${port}`,
    requests,
    count: (match) => requests.filter((request) => match.test(request.line)).length,
    get sentBytes() {
      return requests.reduce((sum, request) => sum + request.sentBytes, 0)
    },
    setRules(next) {
      active = next.map((rule) => ({ rule, seen: 0, pattern: new RegExp(rule.match) }))
    },
    onRequest: (listener) => void listeners.push(listener),
    forget: () => void requests.splice(0),
    async close() {
      for (const passed of upstream) passed.destroy()
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answer(
  response: http.ServerResponse,
  seen: SeenRequest,
  fault: Extract<Fault, { kind: 'status' }>,
): void {
  seen.status = fault.status
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${fault.code}</Code><Message>injected ${fault.code}</Message></Error>`
  response.writeHead(fault.status, {
    'content-type': 'application/xml',
    'content-length': Buffer.byteLength(body),
    ...(fault.retryAfterSeconds === undefined ? {} : { 'retry-after': String(fault.retryAfterSeconds) }),
  })
  response.end(body)
}

function withoutRange(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]!.toLowerCase() !== 'range')
}

function pass(
  found: http.IncomingMessage,
  response: http.ServerResponse,
  seen: SeenRequest,
  fault: Fault | undefined,
): void {
  seen.status = found.statusCode ?? 0
  if (fault?.kind === 'headers') {
    for (const [name, value] of Object.entries({ ...found.headers, ...fault.headers }))
      if (value !== undefined && value !== null) response.setHeader(name, value)
    response.writeHead(found.statusCode ?? 502)
  } else {
    const status = fault?.kind === 'call-it-200' ? 200 : (found.statusCode ?? 502)
    response.writeHead(status, found.rawHeaders)
  }
  response.flushHeaders()
  const limit =
    fault && 'afterBytes' in fault ? (fault.afterBytes ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  let isCut = false
  found.on('data', (chunk: Buffer) => {
    let bytes = chunk
    const at = fault?.kind === 'flip' ? fault.atByte - seen.sentBytes : -1
    if (at >= 0 && at < bytes.length) {
      bytes = Buffer.from(bytes)
      bytes[at]! ^= 1
    }
    const room = limit - seen.sentBytes
    isCut ||= bytes.length > room
    if (isCut) bytes = bytes.subarray(0, Math.max(0, room))
    seen.sentBytes += bytes.length
    const isFull = bytes.length > 0 && !response.write(bytes)
    if (fault?.kind === 'throttle') {
      found.pause()
      setTimeout(() => found.resume(), (bytes.length * 1000) / fault.bytesPerSecond)
    } else if (isFull) {
      found.pause()
      response.once('drain', () => found.resume())
    }
    if (!isCut) return
    found.destroy()
    if (fault?.kind === 'truncate') response.socket?.end()
    if (fault?.kind === 'reset') setImmediate(() => response.socket?.resetAndDestroy())
  })
  found.on('end', () => {
    if (!isCut) response.end()
  })
  found.on('error', () => {})
}
