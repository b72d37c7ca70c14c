import { formatFrameStart, readFrames, type Wire } from '../frames/frame.js'
import type { LengthPrefixedReader, PayloadSink } from '../frames/length-prefixed.js'
import { tryJson } from '../model/try-json.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import { WIRE_VERSION, type WireObject } from './peer-wire.js'

// Many small objects in one answer: a request for each would cost both nodes more than the bytes do.

/** An object in such a question. */
type NamedObject = Pick<WireObject, 'key' | 'sizeBytes' | 'etag' | 'versionId'>

/** Format of such an answer: a frame per object, with its bytes. Other versions are refused. */
const GATHERED_WIRE: Wire = { mark: 'DSCG', version: 2 }

/** The head of an object's frame. */
export interface GatheredHead {
  /** The status that a request for this object alone would get. */
  readonly status: number
  readonly facts?: ObjectFacts
  /** As in `DIGEST_HEADER`. */
  readonly digest?: string | undefined
  /** As in `PROVEN_HEADER`. */
  readonly isProven?: true | undefined
}

/** Path and query of many objects of one dataset. */
export function formatObjectsUrl(dataset: string, source: string, queries: readonly string[]): string {
  const path = `/${WIRE_VERSION}/datasets/${encodeURIComponent(dataset)}/objects`
  return `${path}?source=${encodeURIComponent(source)}&${queries.join('&')}`
}

/** The part of the query that names one object. */
export function formatObjectQuery({ key, sizeBytes, etag, versionId }: NamedObject): string {
  return `object=${encodeURIComponent(JSON.stringify([key, sizeBytes, etag, versionId]))}`
}

/** Reads what `formatObjectsUrl` wrote; undefined when a field is missing or of the wrong kind. */
export function parseObjectsQuery(dataset: string, query: URLSearchParams): WireObject[] | undefined {
  const source = query.get('source')
  const named = query.getAll('object').map(parseObject)
  if (source === null || named.length === 0 || !named.every((object) => object !== undefined))
    return undefined
  return named.map((object) => ({ dataset, source, ...object }))
}

function parseObject(text: string): NamedObject | undefined {
  const parsed = tryJson(text)
  if (!Array.isArray(parsed) || parsed.length !== 4) return undefined
  const [key, sizeBytes, etag, versionId] = parsed as readonly unknown[]
  if (typeof key !== 'string' || !isCount(sizeBytes) || !isTextOrNull(etag) || !isTextOrNull(versionId))
    return undefined
  return { key, sizeBytes, etag, versionId }
}

/** Formats the head that precedes an object's bytes. */
export function formatGatheredHead(head: GatheredHead, lengthBytes: number): Buffer {
  return formatFrameStart(GATHERED_WIRE, head, lengthBytes)
}

/** Extracts the objects from such an answer as its bytes are pushed, one after the other. */
export function readGathered(
  onBegin: (head: GatheredHead, lengthBytes: number) => PayloadSink,
): LengthPrefixedReader<GatheredHead> {
  return readFrames({
    wire: GATHERED_WIRE,
    parse: parseHead,
    refuse: (problem) => new Error(problem),
    onBegin,
    onFrame: () => {},
  })
}

function parseHead(raw: unknown): GatheredHead {
  if (isCount((raw as Partial<GatheredHead> | null)?.status)) return raw as GatheredHead
  throw new TypeError('it has no status')
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}
