import type { ListedObject } from '../source.js'
import { decodeEntities } from './decode-entities.js'

/** An answer to ListObjectsV2. */
export interface ListingPage {
  /** Keys relative to the source's prefix, as the server orders them. */
  readonly objects: readonly ListedObject[]
  /** Common prefixes, relative to the source's prefix; only where a delimiter was asked for. */
  readonly folders: readonly string[]
  /** Where the next page begins; undefined: this is the last. */
  readonly continuation: string | undefined
  readonly isTruncated: boolean
}

/**
 * Reads an answer to ListObjectsV2, looking for the few elements that matter by their tags. Never makes a string of the
 * whole answer, which its keys would keep in memory. Undefined: the answer is not whole.
 */
export function parseListing(body: Buffer, prefix: string): ListingPage | undefined {
  if (!/<\/ListBucketResult>\s*$/.test(body.toString('utf8', Math.max(0, body.length - 64)))) return undefined
  const contentsAt = body.indexOf('<Contents>')
  const headEnd = contentsAt === -1 ? body.length : contentsAt
  const tailBegin = contentsAt === -1 ? body.length : body.lastIndexOf('</Contents>')
  const outside = body.toString('utf8', 0, headEnd) + body.toString('utf8', tailBegin)
  const isUrlEncoded = readElement(outside, 'EncodingType') === 'url'
  const relative = (raw: string) => {
    const key = isUrlEncoded ? decodeUrl(decodeEntities(raw)) : decodeEntities(raw)
    return key.startsWith(prefix) ? key.slice(prefix.length) : key
  }
  const objects: ListedObject[] = []
  for (let at = contentsAt; at !== -1; ) {
    const end = body.indexOf('</Contents>', at)
    const entry = body.toString('utf8', at + '<Contents>'.length, end)
    objects.push({
      key: relative(readElement(entry, 'Key') ?? ''),
      sizeBytes: Number(readElement(entry, 'Size') ?? 0),
      etag: readEtag(entry),
      versionId: null,
      checksum: null,
      modifiedAtMs: Date.parse(readElement(entry, 'LastModified') ?? '') || 0,
    })
    at = body.indexOf('<Contents>', end)
  }
  const folders = Array.from(
    outside.matchAll(/<CommonPrefixes>\s*<Prefix>([^<]*)<\/Prefix>\s*<\/CommonPrefixes>/g),
    ([, raw]) => relative(raw!),
  )
  const continuation = readElement(outside, 'NextContinuationToken')
  return {
    objects,
    folders,
    isTruncated: readElement(outside, 'IsTruncated')?.trim() === 'true',
    continuation: continuation && decodeEntities(continuation),
  }
}

function readEtag(entry: string): string | null {
  const raw = readElement(entry, 'ETag')
  if (raw === undefined) return null
  if (raw.startsWith('&quot;') && raw.endsWith('&quot;')) return raw.slice(6, -6)
  return decodeEntities(raw).replace(/^"|"$/g, '')
}

function readElement(text: string, name: string): string | undefined {
  const tag = `<${name}>`
  const at = text.indexOf(tag)
  if (at === -1) return undefined
  const begin = at + tag.length
  return text.slice(begin, text.indexOf('<', begin))
}

/** As AWS encodes keys: percent, and `+` for a space. Throws a URIError at what is not UTF-8. */
function decodeUrl(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  return decodeURIComponent(text.replaceAll('+', ' '))
}
