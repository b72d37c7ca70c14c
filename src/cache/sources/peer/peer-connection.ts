import type { Headers } from '../../../http/answer-listener.js'
import { HttpPool } from '../../../http/http-pool.js'
import type { Urgency } from '../../../model/urgency.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import {
  DIGEST_HEADER,
  FACTS_HEADER,
  NO_WAIT_HEADER,
  NODE_HEADER,
  type PartDigest,
  PROVEN_HEADER,
  parseFacts,
  parsePartDigest,
  URGENCY_HEADER,
} from '../peer-wire.js'

/** Above the time that an agent holds a request for a part that is still arriving. */
const SILENCE_MS = 12_000
const CONNECT_TIMEOUT_MS = 3000

/** How this node and its peers believe each other. */
export interface PeerAccess {
  readonly token: string | undefined
  /** Certificates that agents' own must be signed by; undefined = those of the system. */
  readonly ca: string | undefined
}

/**
 * `missing`: the peer has no such copy. `early`: it will have the bytes, but not yet. `other`: it is staging another
 * version of the object, or one without it.
 */
export type PeerAnswer =
  | { readonly outcome: 'ok' }
  | { readonly outcome: 'missing' | 'early' | 'other' }
  | { readonly outcome: 'failed'; readonly problem: string }

const NO_AGENT: PeerAnswer = { outcome: 'failed', problem: 'is no agent of this version of dsc' }

/** Keep-alive connections to one agent. */
export interface PeerConnection {
  /** Asks for bytes of an object; `sink` gets them in order and answers how long to pause, ms. */
  get(request: {
    readonly path: string
    readonly offset: number
    readonly length: number
    /** How urgently a node that is staging should have the bytes, which holds the question; undefined: it does not. */
    readonly held: Urgency | undefined
    readonly onFacts: (facts: ObjectFacts) => void
    /** Called before the first byte; undefined: the peer gives none. What it throws ends the request as a failure of the peer. */
    readonly onDigest: (given: (PartDigest & { readonly isProven: boolean }) | undefined) => void
    readonly sink: (chunk: Uint8Array) => number
    readonly signal: AbortSignal | undefined
  }): Promise<PeerAnswer>
  /** Has a node that holds a question for the bytes fetch them next. Nothing comes of it where that cannot be said. */
  hurry(part: { readonly path: string; readonly offset: number; readonly length: number }): void
  close(): Promise<void>
}

/** Opens up to `connections` connections to the agent at `url`. */
export function openPeerConnection(url: string, access: PeerAccess, connections: number): PeerConnection {
  const pool = new HttpPool(url, { connections, ca: access.ca, connectTimeoutMs: CONNECT_TIMEOUT_MS })
  const own: Record<string, string> = {
    host: new URL(url).host,
    ...(access.token === undefined ? {} : { authorization: `Bearer ${access.token}` }),
  }
  return {
    get: ({ path, offset, length, held, onFacts, onDigest, sink, signal }) =>
      new Promise((resolve, reject) => {
        const isHead = length === 0
        const asker = { ...own, ...(held ? { [URGENCY_HEADER]: held } : { [NO_WAIT_HEADER]: '1' }) }
        const headers = isHead ? asker : { ...asker, range: `bytes=${offset}-${offset + length - 1}` }
        let status = 0
        let received = 0
        let isAgent = true
        const settle = (answer: PeerAnswer) => {
          signal?.removeEventListener('abort', stop)
          resolve(answer)
        }
        const control = pool.send(
          { method: isHead ? 'HEAD' : 'GET', path, headers, stallTimeoutMs: SILENCE_MS },
          {
            onHead(code, answered) {
              status = code
              isAgent = answered[NODE_HEADER.toLowerCase()] !== undefined || isOk(code)
              const facts = isOk(code) ? parseFacts(answered[FACTS_HEADER]) : undefined
              if (facts) onFacts(facts)
              try {
                if (isOk(code) && !isHead) onDigest(readDigest(answered))
              } catch (error) {
                control.cancel()
                settle({ outcome: 'failed', problem: describeProblem(error) })
              }
            },
            onData(chunk) {
              if (!isOk(status)) return
              received += chunk.length
              if (received > length) {
                control.cancel()
                settle({ outcome: 'failed', problem: `sent more than ${length} bytes` })
                return
              }
              try {
                const pauseMs = sink(chunk)
                if (pauseMs > 0) {
                  control.pause()
                  setTimeout(control.resume, pauseMs)
                }
              } catch (error) {
                // What the sink throws (a full disk) is the caller's own failure, not the peer's.
                control.cancel()
                signal?.removeEventListener('abort', stop)
                reject(error)
              }
            },
            onEnd: () => settle(isAgent ? judge(status, received, length) : NO_AGENT),
            onError: (error) => settle({ outcome: 'failed', problem: describeProblem(error) }),
          },
        )
        const stop = () => {
          control.cancel()
          settle({ outcome: 'failed', problem: 'stopped' })
        }
        signal?.addEventListener('abort', stop)
        if (signal?.aborted) stop()
      }),
    hurry({ path, offset, length }) {
      const headers = {
        ...own,
        [NO_WAIT_HEADER]: '1',
        [URGENCY_HEADER]: 'wanted',
        ...(length > 0 ? { range: `bytes=${offset}-${offset + length - 1}` } : {}),
      }
      const nothing = () => {}
      pool.send(
        { method: 'HEAD', path, headers, stallTimeoutMs: SILENCE_MS },
        { onHead: nothing, onData: nothing, onEnd: nothing, onError: nothing },
      )
    },
    close: async () => pool.close(),
  }
}

function readDigest(headers: Headers): (PartDigest & { readonly isProven: boolean }) | undefined {
  const part = parsePartDigest(headers[DIGEST_HEADER])
  return part && { ...part, isProven: headers[PROVEN_HEADER] !== undefined }
}

function isOk(status: number): boolean {
  return status === 200 || status === 206
}

function judge(status: number, received: number, length: number): PeerAnswer {
  if (status === 404) return { outcome: 'missing' }
  if (status === 425) return { outcome: 'early' }
  if (status === 409) return { outcome: 'other' }
  if (!isOk(status)) return { outcome: 'failed', problem: describeStatus(status) }
  return received === length
    ? { outcome: 'ok' }
    : { outcome: 'failed', problem: `sent ${received} of ${length} bytes` }
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
