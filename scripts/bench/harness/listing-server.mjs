// An S3 server that has nothing but keys, made on the fly: ListObjectsV2 with prefix, delimiter, start-after and
// continuation tokens. Two buckets: `flat` (sample-00000000.jpg …) and `folders` (part-000/img-00000.jpg …).
// Usage: node listing-server.mjs <keys> <delay of each answer, ms>; prints its port.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const KEYS = Number(process.argv[2] ?? 1_000_000)
const DELAY_MS = Number(process.argv[3] ?? 0)
/** With EMPTY set, objects have no bytes, so that all of them can be staged. */
const sizeOf = process.env.EMPTY ? () => 0 : (index) => 10_000 + (index % 1000)
const FILES_PER_FOLDER = 1000

const pad = (number, width) => String(number).padStart(width, '0')
/** Key by index, ascending. */
const BUCKETS = {
  flat: (index) => `sample-${pad(index, 8)}.jpg`,
  folders: (index) =>
    `part-${pad(Math.floor(index / FILES_PER_FOLDER), 4)}/img-${pad(index % FILES_PER_FOLDER, 5)}.jpg`,
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://server')
  const keyAt = BUCKETS[url.pathname.split('/')[1]]
  if (DELAY_MS > 0) await sleep(DELAY_MS)
  const isListing = url.searchParams.get('list-type') === '2' && keyAt !== undefined
  if (request.method === 'HEAD' || !isListing) {
    response.writeHead(request.method === 'HEAD' && keyAt ? 200 : 404).end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/xml' }).end(list(keyAt, url.searchParams))
})
server.keepAliveTimeout = 60_000
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () =>
  process.stdout.write(`${server.address().port}\n`),
)

function list(keyAt, query) {
  const prefix = query.get('prefix') ?? ''
  const delimiter = query.get('delimiter') ?? ''
  const token = query.get('continuation-token')
  const after = token === null ? (query.get('start-after') ?? '') : Buffer.from(token, 'base64url').toString()
  const most = Math.min(1000, Number(query.get('max-keys') ?? 1000))
  const isUrlEncoded = query.get('encoding-type') === 'url'
  const encode = (text) => (isUrlEncoded ? encodeURIComponent(text) : text)
  const end = findFirst(keyAt, (key) => key > prefix && !key.startsWith(prefix))
  let index = Math.max(
    findFirst(keyAt, (key) => key >= prefix),
    findFirst(keyAt, (key) => key > after),
  )
  const parts = []
  let last = after
  for (; index < end && parts.length < most; ) {
    const key = keyAt(index)
    const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    if (cut === -1) {
      parts.push(
        `<Contents><Key>${encode(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;${pad(index, 32)}&quot;</ETag><Size>${sizeOf(index)}</Size><StorageClass>STANDARD</StorageClass></Contents>`,
      )
      last = key
      index += 1
    } else {
      const folder = key.slice(0, cut + delimiter.length)
      if (folder !== last) parts.push(`<CommonPrefixes><Prefix>${encode(folder)}</Prefix></CommonPrefixes>`)
      last = folder
      index = findFirst(keyAt, (other) => other > folder && !other.startsWith(folder))
    }
  }
  const isTruncated = index < end
  // A folder as token stands for all that is in it.
  const next = delimiter !== '' && last.endsWith(delimiter) ? `${last}\u{10ffff}` : last
  return `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix>${encode(prefix)}</Prefix>${
    isTruncated
      ? `<NextContinuationToken>${Buffer.from(next).toString('base64url')}</NextContinuationToken>`
      : ''
  }<KeyCount>${parts.length}</KeyCount><MaxKeys>${most}</MaxKeys>${delimiter === '' ? '' : `<Delimiter>${encode(delimiter)}</Delimiter>`}${
    isUrlEncoded ? '<EncodingType>url</EncodingType>' : ''
  }<IsTruncated>${isTruncated}</IsTruncated>${parts.join('')}</ListBucketResult>`
}

/** Index of the first key for which `isReached` holds; it holds for all after it. */
function findFirst(keyAt, isReached) {
  let low = 0
  let high = KEYS
  while (low < high) {
    const middle = (low + high) >> 1
    if (isReached(keyAt(middle))) high = middle
    else low = middle + 1
  }
  return low
}
