import type { AnswerListener, Headers } from './answer-listener.js'

const HEAD_END = Buffer.from('\r\n\r\n')
const MAX_HEAD_BYTES = 64 * 1024
const MAX_LINE_BYTES = 4096

/** Determines the end of an answer's body. */
type Framing =
  | { readonly kind: 'length'; leftBytes: number }
  | {
      readonly kind: 'chunked'
      leftBytes: number
      line: string
      state: 'size' | 'data' | 'data-end' | 'trailer'
    }
  | { readonly kind: 'until-close' }

/** An answer that is not valid HTTP/1.1. */
class MalformedAnswer extends Error {
  readonly code = 'HTTP_MALFORMED'
}

/** Parses the bytes of one HTTP/1.1 answer as they arrive: reports its head and passes on its body. */
export class AnswerParser {
  isComplete = false
  mayKeepAlive = true
  /** Bytes of the body so far. */
  bodyBytes = 0
  readonly #method: 'GET' | 'HEAD'
  readonly #listener: Pick<AnswerListener, 'onHead' | 'onData'>
  #head: Buffer | undefined
  #framing: Framing | undefined

  /** After a HEAD request no body follows, regardless of the headers. */
  constructor(method: 'GET' | 'HEAD', listener: Pick<AnswerListener, 'onHead' | 'onData'>) {
    this.#method = method
    this.#listener = listener
  }

  /** Whether the body ends when the connection closes. */
  get isUntilClose(): boolean {
    return this.#framing?.kind === 'until-close'
  }

  /** Parses the next bytes; throws MalformedAnswer. */
  take(bytes: Uint8Array): void {
    let rest: Uint8Array = bytes
    while (this.#framing === undefined && !this.isComplete) {
      const body = this.#takeHead(rest)
      if (body === undefined) return
      rest = body
    }
    if (this.isComplete) {
      if (rest.length > 0) this.mayKeepAlive = false // more than announced: later bytes are not trustworthy
      return
    }
    this.#takeBody(rest)
  }

  /** Parses one head and returns the bytes after it; undefined while it is incomplete. */
  #takeHead(bytes: Uint8Array): Uint8Array | undefined {
    const joined = this.#head ? Buffer.concat([this.#head, bytes]) : asBuffer(bytes)
    const end = joined.indexOf(HEAD_END)
    if (end === -1) {
      if (joined.length > MAX_HEAD_BYTES) throw new MalformedAnswer('the head of the answer is too long')
      this.#head = this.#head ? joined : Buffer.from(joined)
      return undefined
    }
    this.#head = undefined
    const lines = joined.toString('latin1', 0, end).split('\r\n')
    const [, minor, code] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(lines[0] ?? '') ?? []
    if (code === undefined)
      throw new MalformedAnswer(`expected HTTP/1.1, found ${JSON.stringify(lines[0]?.slice(0, 40))}`)
    const status = Number(code)
    if (status >= 200) {
      const headers = parseHeaders(lines)
      this.#beginBody(status, headers, minor === '0' ? '1.0' : '1.1')
      this.#listener.onHead(status, headers)
    } else if (status === 101) throw new MalformedAnswer('the server switches protocols')
    return joined.subarray(end + HEAD_END.length)
  }

  #beginBody(status: number, headers: Headers, version: '1.0' | '1.1'): void {
    const connection = headers.connection?.toLowerCase() ?? ''
    this.mayKeepAlive = version === '1.0' ? connection.includes('keep-alive') : !connection.includes('close')
    const coding = headers['transfer-encoding']?.toLowerCase()
    const length = headers['content-length']
    if (this.#method === 'HEAD' || status === 204 || status === 304) this.isComplete = true
    else if (coding !== undefined) {
      if (coding.trim() !== 'chunked') throw new MalformedAnswer(`transfer coding ${JSON.stringify(coding)}`)
      if (length !== undefined) this.mayKeepAlive = false // having both is an error that must not reach the next answer
      this.#framing = { kind: 'chunked', leftBytes: 0, line: '', state: 'size' }
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new MalformedAnswer(`content-length ${JSON.stringify(length)}`)
      this.#framing = { kind: 'length', leftBytes: Number(length) }
    } else {
      this.mayKeepAlive = false
      this.#framing = { kind: 'until-close' }
    }
  }

  /** Bytes of the body that are still to come; undefined: not known. */
  get leftBytes(): number | undefined {
    return this.#framing?.kind === 'length' ? this.#framing.leftBytes : undefined
  }

  #takeBody(bytes: Uint8Array): void {
    const framing = this.#framing!
    if (framing.kind === 'chunked') this.#takeChunks(framing, asBuffer(bytes))
    else if (framing.kind === 'until-close') this.#hand(bytes)
    else {
      const taken = Math.min(bytes.length, framing.leftBytes)
      framing.leftBytes -= taken
      if (taken < bytes.length) this.mayKeepAlive = false
      this.#hand(taken < bytes.length ? bytes.subarray(0, taken) : bytes)
      if (framing.leftBytes === 0) this.isComplete = true
    }
  }

  #takeChunks(framing: Extract<Framing, { kind: 'chunked' }>, bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      if (framing.state === 'data') {
        const taken = Math.min(bytes.length - at, framing.leftBytes)
        this.#hand(bytes.subarray(at, at + taken))
        at += taken
        framing.leftBytes -= taken
        if (framing.leftBytes === 0) framing.state = 'data-end'
        continue
      }
      const newline = bytes.indexOf(10, at)
      framing.line += bytes.toString('latin1', at, newline === -1 ? bytes.length : newline)
      if (framing.line.length > MAX_LINE_BYTES) throw new MalformedAnswer('a chunk size is too long')
      if (newline === -1) return
      at = newline + 1
      const line = framing.line.replace(/\r$/, '')
      framing.line = ''
      if (framing.state === 'size') {
        const size = /^([0-9a-f]{1,12})\s*(?:;|$)/i.exec(line)?.[1]
        if (size === undefined) throw new MalformedAnswer(`chunk size ${JSON.stringify(line.slice(0, 40))}`)
        framing.leftBytes = Number.parseInt(size, 16)
        framing.state = framing.leftBytes === 0 ? 'trailer' : 'data'
      } else if (framing.state === 'data-end') {
        if (line !== '') throw new MalformedAnswer('a chunk is longer than its size')
        framing.state = 'size'
      } else if (line === '') {
        this.isComplete = true
        if (at < bytes.length) this.mayKeepAlive = false
        return
      }
    }
  }

  #hand(bytes: Uint8Array): void {
    this.bodyBytes += bytes.length
    if (bytes.length > 0) this.#listener.onData(bytes)
  }
}

function parseHeaders(lines: readonly string[]): Headers {
  const headers: Record<string, string> = Object.create(null)
  for (let index = 1; index < lines.length; index += 1) {
    const line = lines[index]!
    const colon = line.indexOf(':')
    if (colon <= 0) throw new MalformedAnswer(`header ${JSON.stringify(line.slice(0, 40))}`)
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
  }
  return headers
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
