import type { ObjectFacts, SourceChecksum } from '../proof/object-facts.js'
import type { InspectRequest } from './source.js'

/** Version of the protocol between agents; every path begins with it. Raise it when a meaning changes. */
export const WIRE_VERSION = 'v1'

/** Answer header: the known checksums of an object, as JSON. */
export const FACTS_HEADER = 'x-dsc-facts'
/**
 * Answer header: digest and place of the part that contains the range (or of the object, if it is one part):
 * `<offset>+<length> <algorithm>:<base64>`.
 */
export const DIGEST_HEADER = 'x-dsc-digest'
/**
 * Answer header beside the digest: this node has verified the whole object, so bytes with the digest are the source's.
 * Without it the digest only covers what this node has received so far.
 */
export const PROVEN_HEADER = 'x-dsc-proven'
/** Answer header of every agent: the name of its node, so that a wrong address is noticed. */
export const NODE_HEADER = 'x-dsc-node'

/**
 * Request header for an object: the client does not want to wait. Without it a node that is staging holds the request
 * until it has the object.
 */
export const NO_WAIT_HEADER = 'x-dsc-no-wait'

/**
 * Header of a request that is held: its `Urgency` on the requesting node. Without it the object is fetched in its turn.
 */
export const URGENCY_HEADER = 'x-dsc-urgency'

/** Identifies an object by its content: any copy with the same content may serve it. */
export interface WireObject {
  readonly dataset: string
  /** URL of the source of the copy. */
  readonly source: string
  readonly key: string
  readonly sizeBytes: number
  readonly etag: string | null
  readonly versionId: string | null
}

/** Path and query of an object. The server looks its fields up in a manifest; no field ever becomes a path. */
export function formatObjectUrl(
  dataset: string,
  source: string,
  object: Pick<InspectRequest, 'key' | 'sizeBytes' | 'etag' | 'versionId'>,
): string {
  const query = new URLSearchParams({ source, key: object.key, size: String(object.sizeBytes) })
  if (object.etag !== null) query.set('etag', object.etag)
  if (object.versionId !== null) query.set('versionId', object.versionId)
  return `/${WIRE_VERSION}/datasets/${encodeURIComponent(dataset)}/object?${query}`
}

/** Reads what `formatObjectUrl` wrote; undefined when a field is missing. */
export function parseObjectQuery(dataset: string, query: URLSearchParams): WireObject | undefined {
  const [source, key, size] = [query.get('source'), query.get('key'), query.get('size')]
  if (source === null || key === null || size === null || !/^\d{1,16}$/.test(size)) return undefined
  return {
    dataset,
    source,
    key,
    sizeBytes: Number(size),
    etag: query.get('etag'),
    versionId: query.get('versionId'),
  }
}

/** Path of a ready copy's manifest, a single SQLite file. */
export function formatManifestUrl(copyId: string): string {
  return `/${WIRE_VERSION}/copies/${encodeURIComponent(copyId)}/manifest`
}

/** Path for using a node's whole dataset in place (`dsc prepare --remote`). */
export function formatRemoteUrl(dataset: string): string {
  return `/${WIRE_VERSION}/datasets/${encodeURIComponent(dataset)}/`
}

/** Reads the facts about an object from a node's answer header; undefined without one. Throws as `requireFacts`. */
export function parseFacts(header: string | string[] | undefined): ObjectFacts | undefined {
  return typeof header === 'string' ? requireFacts(JSON.parse(header)) : undefined
}

/** Throws for invalid facts: dsc trusts no node whose facts the rest of dsc could not read. */
export function requireFacts(raw: unknown): ObjectFacts {
  const { checksums, uploadPartBytes, isEtagMd5 } = (raw ?? {}) as Partial<ObjectFacts>
  const isSize = uploadPartBytes === null || (Number.isSafeInteger(uploadPartBytes) && uploadPartBytes! > 0)
  if (Array.isArray(checksums) && checksums.every(isChecksum) && isSize && typeof isEtagMd5 === 'boolean')
    return raw as ObjectFacts
  throw new Error(`says of an object ${String(JSON.stringify(raw)).slice(0, 80)}`)
}

function isChecksum(raw: unknown): boolean {
  const { algorithm, value, isComposite } = (raw ?? {}) as Partial<SourceChecksum>
  return typeof algorithm === 'string' && typeof value === 'string' && typeof isComposite === 'boolean'
}

/** A part of an object and its digest, `algorithm:base64`. */
export interface PartDigest {
  readonly offset: number
  readonly length: number
  readonly digest: string
}

/** Formats a part and its digest as a header of a node's answer. */
export function formatPartDigest({ offset, length, digest }: PartDigest): string {
  return `${offset}+${length} ${digest}`
}

/** Reads what `formatPartDigest` wrote; undefined for anything else. */
export function parsePartDigest(header: string | string[] | undefined): PartDigest | undefined {
  if (typeof header !== 'string') return undefined
  const match =
    /^(\d{1,16})\+(\d{1,16}) ((?:crc32|crc32c|crc64nvme|sha256|sha1|md5):[A-Za-z0-9+/=]{1,64})$/.exec(header)
  if (!match) return undefined
  return { offset: Number(match[1]), length: Number(match[2]), digest: match[3]! }
}
