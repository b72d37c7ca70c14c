import type { ObjectFacts } from '../proof/object-facts.js'
import { WIRE_VERSION, type WireObject } from './peer-wire.js'

// Many small objects in one answer: a question of its own for each costs both nodes more than its bytes do.

/** An object in such a question. */
type NamedObject = Pick<WireObject, 'key' | 'sizeBytes' | 'etag' | 'versionId'>

/** What stands before the bytes of each object in such an answer: a line of JSON. */
export interface GatheredHead {
  /** As of an answer to a question for it alone. */
  readonly status: number
  /** Bytes that follow the line. */
  readonly length: number
  readonly facts?: ObjectFacts
  /** As in `DIGEST_HEADER`. */
  readonly digest?: string
  /** As `PROVEN_HEADER` says. */
  readonly isProven?: true
}

/** A head that is longer is none, bytes. */
const MAX_HEAD_BYTES = 64 * 1024
const NEWLINE = 10

/** Path and query of many objects of one dataset. */
export function formatObjectsUrl(dataset: string, source: string, queries: readonly string[]): string {
  const path = `/${WIRE_VERSION}/datasets/${encodeURIComponent(dataset)}/objects`
  return `${path}?source=${encodeURIComponent(source)}&${queries.join('&')}`
}

/** The piece of the query that names one object. */
export function formatObjectQuery({ key, sizeBytes, etag, versionId }: NamedObject): string {
  return `object=${encodeURIComponent(JSON.stringify([key, sizeBytes, etag, versionId]))}`
}

/** Reads what `formatObjectsUrl` wrote; undefined when a field is missing or none of its kind. */
export function parseObjectsQuery(dataset: string, query: URLSearchParams): WireObject[] | undefined {
  const source = query.get('source')
  const named = query.getAll('object').map(parseObject)
  if (source === null || named.length === 0 || !named.every((object) => object !== undefined))
    return undefined
  return named.map((object) => ({ dataset, source, ...object }))
}

function parseObject(text: string): NamedObject | undefined {
  const parsed = parseJson(text)
  if (!Array.isArray(parsed) || parsed.length !== 4) return undefined
  const [key, sizeBytes, etag, versionId] = parsed as readonly unknown[]
  if (typeof key !== 'string' || !isCount(sizeBytes) || !isTextOrNull(etag) || !isTextOrNull(versionId))
    return undefined
  return { key, sizeBytes, etag, versionId }
}

/** A head with the newline that ends it. */
export function formatGatheredHead(head: GatheredHead): string {
  return `${JSON.stringify(head)}\n`
}

interface GatheredEvents {
  readonly onHead: (head: GatheredHead) => void
  /** A chunk is valid only during the call. */
  readonly onData: (chunk: Uint8Array) => void
  /** The object is complete. */
  readonly onEnd: () => void
}

/** Takes the bytes of such an answer as they come, and hands out its objects one after the other. */
export class GatheredParser {
  readonly #events: GatheredEvents
  /** What came of a head that is not complete. */
  #line: Buffer | undefined
  #leftBytes = 0

  constructor(events: GatheredEvents) {
    this.#events = events
  }

  /** Throws for what is no such answer. */
  take(bytes: Uint8Array): void {
    for (let rest = bytes; rest.length > 0; ) {
      const taken = this.#leftBytes > 0 ? this.#takeData(rest) : this.#takeHead(rest)
      rest = rest.subarray(taken)
    }
  }

  #takeData(bytes: Uint8Array): number {
    const chunk = bytes.subarray(0, this.#leftBytes)
    this.#leftBytes -= chunk.length
    this.#events.onData(chunk)
    if (this.#leftBytes === 0) this.#events.onEnd()
    return chunk.length
  }

  #takeHead(bytes: Uint8Array): number {
    const newline = bytes.indexOf(NEWLINE)
    const taken = newline === -1 ? bytes.length : newline + 1
    const line = Buffer.concat([this.#line ?? Buffer.alloc(0), bytes.subarray(0, taken)])
    if (line.length > MAX_HEAD_BYTES) throw new Error('the head of an object is too long')
    this.#line = newline === -1 ? line : undefined
    if (newline === -1) return taken
    const head = parseHead(line.toString('utf8'))
    this.#leftBytes = head.length
    this.#events.onHead(head)
    if (head.length === 0) this.#events.onEnd()
    return taken
  }
}

function parseHead(line: string): GatheredHead {
  const head = parseJson(line) as Partial<GatheredHead> | null | undefined
  if (isCount(head?.status) && isCount(head.length)) return head as GatheredHead
  throw new Error(`expected the head of an object, found ${JSON.stringify(line.slice(0, 40))}`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}
