// A read-only S3 bucket `bench` over a folder, behind a link of its own: every answer waits for the link's delay, and
// all answers together get its bandwidth. Started by cold.mjs and swarm-world.mjs as a process of its own.
// Usage: shaped-store.mjs FOLDER BYTES_PER_SECOND DELAY_MS [ADDRESS]; prints its port. GET /-/sent: body bytes sent so
// far. BYTES_PER_SECOND may be Infinity, where the kernel shapes the link.
import { createHash } from 'node:crypto'
import { openSync, readdirSync, readSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const [folder, rate, delay, address = '127.0.0.1'] = process.argv.slice(2)
const bytesPerSecond = Number(rate)
const delayMs = Number(delay)
const CHUNK_BYTES = 64 * 1024
/** Keys of a page of a listing. */
const PAGE = 1000
const objects = new Map()
let keys
let sentBytes = 0
/** When the link has carried what was given to it, ms. */
let busyUntilMs = 0

function find(key) {
  let object = objects.get(key)
  if (object === undefined) {
    const path = join(folder, key)
    const { size } = statSync(path, { throwIfNoEntry: false }) ?? {}
    if (size === undefined) return undefined
    const file = openSync(path)
    const bytes = Buffer.alloc(size)
    readSync(file, bytes, 0, size, 0)
    object = { bytes, etag: createHash('md5').update(bytes).digest('hex') }
    objects.set(key, object)
  }
  return object
}

function list(query) {
  keys ??= readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
  const [prefix, after] = [
    query.get('prefix') ?? '',
    query.get('continuation-token') ?? query.get('start-after') ?? '',
  ]
  const wanted = keys.filter((key) => key.startsWith(prefix) && key > after)
  const page = wanted.slice(0, PAGE)
  const contents = page.map((key) => {
    const { bytes, etag } = find(key)
    return `<Contents><Key>${key}</Key><Size>${bytes.length}</Size><ETag>"${etag}"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`
  })
  const next = wanted.length > PAGE ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''
  return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${next !== ''}</IsTruncated><KeyCount>${page.length}</KeyCount>${next}${contents.join('')}</ListBucketResult>`
}

/** Waits until the link has carried so many bytes more. */
async function carry(bytes) {
  busyUntilMs = Math.max(busyUntilMs, performance.now()) + (bytes * 1000) / bytesPerSecond
  const waitMs = busyUntilMs - performance.now()
  if (waitMs > 1) await sleep(waitMs)
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://store')
  if (url.pathname === '/-/sent') return response.end(`${sentBytes}`)
  await sleep(delayMs)
  const key = decodeURIComponent(url.pathname).split('/').slice(2).join('/')
  if (key === '')
    return response.writeHead(200, { 'content-type': 'application/xml' }).end(list(url.searchParams))
  const object = find(key)
  if (object === undefined) return response.writeHead(404).end()
  const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
  const { bytes, etag } = object
  const first = match ? Number(match[1]) : 0
  const last = match?.[2] ? Math.min(Number(match[2]), bytes.length - 1) : bytes.length - 1
  response.writeHead(match ? 206 : 200, {
    etag: `"${etag}"`,
    'content-length': last + 1 - first,
    'accept-ranges': 'bytes',
    'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
    ...(match ? { 'content-range': `bytes ${first}-${last}/${bytes.length}` } : {}),
  })
  if (request.method === 'HEAD') return response.end()
  for (let at = first; at <= last && !response.destroyed; at += CHUNK_BYTES) {
    const chunk = bytes.subarray(at, Math.min(at + CHUNK_BYTES, last + 1))
    await carry(chunk.length)
    sentBytes += chunk.length
    response.write(chunk)
  }
  return response.end()
}

const server = createServer((request, response) => void answer(request, response))
server.listen(0, address, () => console.log(server.address().port))
