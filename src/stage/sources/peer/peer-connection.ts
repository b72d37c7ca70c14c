import { Pool } from 'undici'
import { parseFacts } from '../../peer-wire.js'
import type { ObjectFacts } from '../../plan/object-facts.js'

/** Above the time that an agent holds a request for a part that is still arriving. */
const HEAD_TIMEOUT_MS = 12_000
const CONNECT_TIMEOUT_MS = 3000

export interface PeerAccess {
  readonly token: string | undefined
  /** Certificates that agents' own must be signed by; undefined = those of the system. */
  readonly ca: string | undefined
}

/** `missing`: the peer has no such copy. `early`: it will have the bytes, but not yet. */
export type PeerAnswer =
  | { readonly outcome: 'ok' }
  | { readonly outcome: 'missing' | 'early' }
  | { readonly outcome: 'failed'; readonly problem: string }

/** Keep-alive connections to one agent. */
export interface PeerConnection {
  /** Asks for bytes of an object; `sink` gets them in order and answers how long to pause, ms. */
  get(request: {
    readonly path: string
    readonly offset: number
    readonly length: number
    /** No byte for so long ends the attempt, ms. */
    readonly stallTimeoutMs: number
    readonly onFacts: (facts: ObjectFacts) => void
    readonly sink: (chunk: Uint8Array) => number
    readonly signal: AbortSignal | undefined
  }): Promise<PeerAnswer>
  close(): Promise<void>
}

/** Opens up to `connections` connections to the agent at `url`. */
export function openPeerConnection(url: string, access: PeerAccess, connections: number): PeerConnection {
  const pool = new Pool(url, {
    connections,
    pipelining: 1,
    keepAliveTimeout: 20_000,
    connect: { timeout: CONNECT_TIMEOUT_MS, ...(access.ca === undefined ? {} : { ca: access.ca }) },
  })
  const headers: Record<string, string> =
    access.token === undefined ? {} : { authorization: `Bearer ${access.token}` }
  return {
    async get({ path, offset, length, stallTimeoutMs, onFacts, sink, signal }) {
      // What the sink throws (a full disk) is the caller's own failure, not the peer's.
      let sinkFailure: { readonly error: unknown } | undefined
      try {
        const answer = await pool.request({
          method: length === 0 ? 'HEAD' : 'GET',
          path,
          headers: length === 0 ? headers : { ...headers, range: `bytes=${offset}-${offset + length - 1}` },
          headersTimeout: HEAD_TIMEOUT_MS,
          bodyTimeout: Math.min(stallTimeoutMs, HEAD_TIMEOUT_MS),
          ...(signal ? { signal } : {}),
        })
        const { statusCode, body } = answer
        if (statusCode !== 206 && statusCode !== 200) {
          await body.dump()
          if (statusCode === 404) return { outcome: 'missing' }
          if (statusCode === 425) return { outcome: 'early' }
          return { outcome: 'failed', problem: describeStatus(statusCode) }
        }
        const facts = parseFacts(answer.headers['x-dsc-facts'])
        if (facts) onFacts(facts)
        if (length === 0) {
          await body.dump()
          return { outcome: 'ok' }
        }
        let received = 0
        await new Promise<void>((resolve, reject) => {
          body.on('data', (chunk: Buffer) => {
            received += chunk.length
            try {
              if (received > length) throw new Error(`sent more than ${length} bytes`)
              const pauseMs = sink(chunk)
              if (pauseMs > 0) {
                body.pause()
                setTimeout(() => body.resume(), pauseMs)
              }
            } catch (error) {
              if (received <= length) sinkFailure = { error }
              body.destroy(error as Error)
            }
          })
          body.on('end', resolve)
          body.on('error', reject)
        })
        return received === length
          ? { outcome: 'ok' }
          : { outcome: 'failed', problem: `sent ${received} of ${length} bytes` }
      } catch (error) {
        if (sinkFailure) throw sinkFailure.error
        return { outcome: 'failed', problem: describeProblem(error) }
      }
    },
    close: () => pool.destroy(),
  }
}

function describeStatus(status: number): string {
  if (status === 401) return 'does not accept the token (401); agent.tokenFile must be the same on all nodes'
  return `answered ${status}`
}

function describeProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? ` (${String(error.code)})` : ''
  return `${error.message || error.name}${code}`
}
