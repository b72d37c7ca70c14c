import type { ListedObject } from '../source.js'
import { decodeEntities } from './decode-entities.js'

/** An answer to ListObjectsV2. */
export interface ListingPage {
  /** Keys relative to the source's prefix, as the server orders them. */
  readonly objects: readonly ListedObject[]
  /** Common prefixes, relative to the source's prefix; only where a delimiter was asked for. */
  readonly folders: readonly string[]
  /** Where the next page begins; undefined: this is the last, or the server knows version 1 of the listing only. */
  readonly continuation: string | undefined
  /** More pages follow, or the server does not rule it out. */
  readonly isTruncated: boolean
}

const BEGIN = '<Contents>'
const END = '</Contents>'
/** An answer becomes text in pieces of this size; a key keeps its piece in memory. */
const PIECE_BYTES = 16_384
const COMMON_PREFIX = /<CommonPrefixes>\s*<Prefix>([^<]*)<\/Prefix>\s*<\/CommonPrefixes>/g

/**
 * Reads an answer to ListObjectsV2 by finding the tags of the few elements that matter. Undefined: the answer is
 * incomplete. No digest covers a listing, so anything that may hide a key counts as damage: a misplaced tag, a
 * duplicate key, fewer keys than were counted.
 */
export function parseListing(body: Buffer, prefix: string): ListingPage | undefined {
  if (!/<\/ListBucketResult>\s*$/.test(body.toString('utf8', Math.max(0, body.length - 64)))) return undefined
  const contentsAt = body.indexOf(BEGIN)
  const headEnd = contentsAt === -1 ? body.length : contentsAt
  const tailBegin = contentsAt === -1 ? body.length : body.lastIndexOf(END) + END.length
  const outside = body.toString('utf8', 0, headEnd) + body.toString('utf8', tailBegin)
  const isUrlEncoded = readElement(outside, '<EncodingType>') === 'url'
  const relative = (raw: string) => {
    const key = isUrlEncoded ? decodeUrl(decodeEntities(raw)) : decodeEntities(raw)
    return key.startsWith(prefix) ? key.slice(prefix.length) : undefined
  }
  const objects: ListedObject[] = []
  for (let at = contentsAt; at !== -1 && at < tailBegin; ) {
    const end = endOfPiece(body, at, tailBegin)
    if (!readObjects(body.toString('utf8', at, end), relative, objects)) return undefined
    at = end
  }
  if (tailBegin < headEnd || hasKeyTwice(objects)) return undefined
  const folders: string[] = []
  for (const [, raw] of outside.matchAll(COMMON_PREFIX)) {
    const folder = relative(raw!)
    if (folder === undefined) return undefined
    folders.push(folder)
  }
  const page = readPagePlace(outside.replaceAll(COMMON_PREFIX, ''), objects.length + folders.length)
  return page && { objects, folders, ...page }
}

/** Where a run of objects from `at` on of about PIECE_BYTES ends: at least one object. */
function endOfPiece(body: Buffer, at: number, tailBegin: number): number {
  if (tailBegin - at <= PIECE_BYTES) return tailBegin
  const last = body.lastIndexOf(END, at + PIECE_BYTES)
  return (last > at ? last : body.indexOf(END, at)) + END.length
}

/** Adds the objects in `text`; false: it contains something else. */
function readObjects(
  text: string,
  relative: (raw: string) => string | undefined,
  objects: ListedObject[],
): boolean {
  const [before, ...entries] = text.split(BEGIN)
  if (before!.trim() !== '') return false
  for (const entry of entries) {
    const end = entry.indexOf(END)
    const object = end === -1 ? undefined : readObject(entry.slice(0, end), relative)
    if (object === undefined || entry.slice(end + END.length).trim() !== '') return false
    objects.push(object)
  }
  return true
}

/** Most servers list in ascending order, which rules it out. */
function hasKeyTwice(objects: readonly ListedObject[]): boolean {
  if (objects.every(({ key }, index) => index === 0 || objects[index - 1]!.key < key)) return false
  return new Set(objects.map(({ key }) => key)).size < objects.length
}

/** `text` lies between the tags of one object. */
function readObject(text: string, relative: (raw: string) => string | undefined): ListedObject | undefined {
  const name = readElement(text, '<Key>')
  const key = name === undefined ? undefined : relative(name)
  const size = readElement(text, '<Size>')?.trim() ?? ''
  if (key === undefined || !/^\d+$/.test(size)) return undefined
  return {
    key,
    sizeBytes: Number(size),
    etag: readEtag(text),
    versionId: null,
    checksum: null,
    modifiedAtMs: Date.parse(readElement(text, '<LastModified>') ?? '') || 0,
  }
}

/** `text` is a page without its entries, `found` their number. Servers that count no folders are trusted. */
function readPagePlace(
  text: string,
  found: number,
): Pick<ListingPage, 'continuation' | 'isTruncated'> | undefined {
  const keyCount = readElement(text, '<KeyCount>')?.trim() ?? '0'
  const isTruncated = readElement(text, '<IsTruncated>')?.trim()
  const token = readElement(text, '<NextContinuationToken>') || undefined
  const isWhole =
    !/Contents>|CommonPrefixes>|<Key>|<Prefix>.*<Prefix>/s.test(text) &&
    /^\d+$/.test(keyCount) &&
    Number(keyCount) <= found &&
    (isTruncated === 'true' || isTruncated === 'false' || isTruncated === undefined)
  if (!isWhole) return undefined
  // The next page is requested if this one names it, or does not say that it is the last.
  const isLast = isTruncated === 'false' || (isTruncated === undefined && found === 0)
  return { isTruncated: !isLast || token !== undefined, continuation: token && decodeEntities(token) }
}

function readEtag(entry: string): string | null {
  const raw = readElement(entry, '<ETag>')
  if (raw === undefined) return null
  if (raw.startsWith('&quot;') && raw.endsWith('&quot;')) return raw.slice(6, -6)
  return decodeEntities(raw).replace(/^"|"$/g, '')
}

/** The text after the first `tag`, such as `<Key>`, up to the next tag. */
function readElement(text: string, tag: string): string | undefined {
  const at = text.indexOf(tag)
  if (at === -1) return undefined
  const begin = at + tag.length
  return text.slice(begin, text.indexOf('<', begin))
}

/** Decodes keys as AWS encodes them: percent, and `+` for a space. Throws a URIError for anything that is not UTF-8. */
function decodeUrl(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  return decodeURIComponent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}
