import type { ObjectFacts, SourceChecksum } from '../proof/object-facts.js'
import type { InspectRequest } from './source.js'

/** Version of what agents say to each other; it begins every path. A change of meaning needs a new one. */
export const WIRE_VERSION = 'v1'

/** Answer header: what is known of an object's checksums, as JSON. */
export const FACTS_HEADER = 'x-dsc-facts'
/**
 * Answer header: digest of the part (or of the object, where it is one part) that the range lies in, with its place:
 * `<offset>+<length> <algorithm>:<base64>`.
 */
export const DIGEST_HEADER = 'x-dsc-digest'
/**
 * Answer header beside the digest: this node has proven the whole object, so that bytes with the digest are the
 * source's. Without it the digest only says what this node has received so far.
 */
export const PROVEN_HEADER = 'x-dsc-proven'
/** Answer header of every agent: its node, so that a wrong address is noticed. */
export const NODE_HEADER = 'x-dsc-node'

/**
 * Header of a question for an object: whoever asks does not wait for it. Without it a node that is staging holds the
 * question until it has the object.
 */
export const NO_WAIT_HEADER = 'x-dsc-no-wait'

/** Header of a question that is held: its `Urgency` where it is asked. Without it the object is fetched in its turn. */
export const URGENCY_HEADER = 'x-dsc-urgency'

/** Names an object by its content: any copy that has the same may serve it. */
export interface WireObject {
  readonly dataset: string
  /** URL of the source that the copy was made from. */
  readonly source: string
  readonly key: string
  readonly sizeBytes: number
  readonly etag: string | null
  readonly versionId: string | null
}

/** Path and query of an object. The server looks its fields up in a manifest; none of them ever becomes a path. */
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

/** Path of the manifest of a ready copy, one SQLite file. */
export function formatManifestUrl(copyId: string): string {
  return `/${WIRE_VERSION}/copies/${encodeURIComponent(copyId)}/manifest`
}

/** Path that a whole dataset of a node is used at in place (`dsc prepare --remote`). */
export function formatRemoteUrl(dataset: string): string {
  return `/${WIRE_VERSION}/datasets/${encodeURIComponent(dataset)}/`
}

/** What a node's answer says of the object beside its bytes; undefined when it says nothing. Throws as `requireFacts`. */
export function parseFacts(header: string | string[] | undefined): ObjectFacts | undefined {
  return typeof header === 'string' ? requireFacts(JSON.parse(header)) : undefined
}

/** Throws for what is no facts: a node is not believed that the rest of dsc could not read. */
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

/** A part and its digest as a header of a node's answer. */
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
