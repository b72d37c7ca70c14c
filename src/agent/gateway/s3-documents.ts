import type { BucketPage } from './plan-listing.js'
import { encodeToken, type ListQuery, type S3Error } from './s3-request.js'

const HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
const NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
/** dsc has no owners, but some clients need the element. */
const OWNER = '<Owner><ID>dsc</ID><DisplayName>dsc</DisplayName></Owner>'

/** The bodies of S3's answers, as the S3 API reference shows them. */

export function formatError(error: S3Error, resource: string, requestId: string): string {
  const details = Object.entries(error.details).map(([name, value]) => tag(name, value))
  // Messages are for people: replace characters that XML cannot hold, so that the code stays readable.
  const message = error.message.replace(/[\p{Cc}\uFFFE\uFFFF]/gu, '\uFFFD')
  return `${HEAD}<Error>${tag('Code', error.code)}${tag('Message', message)}${details.join('')}${tag('Resource', resource)}${tag('RequestId', requestId)}</Error>`
}

/** The answer to ListBuckets. Datasets have no date of their own: 1970 stands in. */
export function formatBuckets(
  query: { readonly prefix: string; readonly after: string; readonly maxBuckets: number },
  buckets: readonly string[],
): string {
  const { prefix, after, maxBuckets } = query
  const wanted = buckets.filter((name) => name.startsWith(prefix) && name > after)
  const page = wanted.slice(0, maxBuckets)
  const next = wanted.length > page.length ? tag('ContinuationToken', encodeToken(page.at(-1)!)) : ''
  const told = `${next}${prefix === '' ? '' : tag('Prefix', prefix)}`
  const list = page.map((name) => `<Bucket>${tag('Name', name)}${tag('CreationDate', date(0))}</Bucket>`)
  return `${HEAD}<ListAllMyBucketsResult ${NAMESPACE}>${OWNER}<Buckets>${list.join('')}</Buckets>${told}</ListAllMyBucketsResult>`
}

/** Empty means us-east-1: every client reads that as a server without regions. */
export function formatLocation(): string {
  return `${HEAD}<LocationConstraint ${NAMESPACE}/>`
}

/** The answer to GetBucketVersioning: never enabled. */
export function formatVersioning(): string {
  return `${HEAD}<VersioningConfiguration ${NAMESPACE}/>`
}

/** A page of ListObjects or ListObjectsV2; its keys are URL-encoded if the client asked for that. */
export function formatListing(
  query: ListQuery & { readonly kind: 'ListObjects' | 'ListObjectsV2'; readonly bucket: string },
  page: BucketPage,
): string {
  const { kind, bucket, prefix, delimiter, maxKeys, isUrlEncoded, continuationToken, startAfter } = query
  const owner = query.showsOwner ? OWNER : ''
  const text = (value: string) => (isUrlEncoded ? encodeKey(value) : value)
  const isV2 = kind === 'ListObjectsV2'
  const parts = [tag('Name', bucket), tag('Prefix', text(prefix))]
  if (delimiter !== '') parts.push(tag('Delimiter', text(delimiter)))
  parts.push(tag('MaxKeys', String(maxKeys)), tag('IsTruncated', String(page.next !== undefined)))
  if (isUrlEncoded) parts.push(tag('EncodingType', 'url'))
  if (isV2) {
    parts.push(tag('KeyCount', String(page.objects.length + page.commonPrefixes.length)))
    if (continuationToken !== undefined) parts.push(tag('ContinuationToken', continuationToken))
    if (startAfter !== undefined) parts.push(tag('StartAfter', text(startAfter)))
    if (page.next !== undefined) parts.push(tag('NextContinuationToken', encodeToken(page.next)))
  } else {
    parts.push(tag('Marker', text(query.after)))
    if (page.next !== undefined) parts.push(tag('NextMarker', text(page.next)))
  }
  for (const { key, sizeBytes, etag, modifiedAtMs } of page.objects) {
    const head = `${tag('Key', text(key))}${tag('LastModified', date(modifiedAtMs))}`
    const proof = etag === null ? '' : tag('ETag', `"${etag}"`)
    const rest = `${tag('Size', String(sizeBytes))}${owner}${tag('StorageClass', 'STANDARD')}`
    parts.push(`<Contents>${head}${proof}${rest}</Contents>`)
  }
  for (const folder of page.commonPrefixes)
    parts.push(`<CommonPrefixes>${tag('Prefix', text(folder))}</CommonPrefixes>`)
  return `${HEAD}<ListBucketResult ${NAMESPACE}>${parts.join('')}</ListBucketResult>`
}

function tag(name: string, value: string): string {
  return `<${name}>${escapeXml(value)}</${name}>`
}

function date(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** Encodes as S3 does for `encoding-type=url`: `/` stays. */
function encodeKey(key: string): string {
  return encodeURIComponent(key).replaceAll('%2F', '/')
}

function escapeXml(text: string): string {
  return (
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      // XML 1.0 has no other control characters, not even escaped; keys with them need encoding-type=url.
      .replace(/[\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`)
  )
}
