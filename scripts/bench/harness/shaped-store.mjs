// A read-only S3 bucket `bench` over a folder, behind a link of its own: every answer waits for the link's delay, and
// all answers together get its bandwidth. Started by cold.mjs and swarm-world.mjs as a process of its own. It speaks
// HTTP by hand: node:http would take more of the processor for a small answer than the clients that are measured.
// Usage: shaped-store.mjs FOLDER BYTES_PER_SECOND DELAY_MS [ADDRESS]; prints its port. GET /-/sent: body bytes sent so
// far. BYTES_PER_SECOND may be Infinity, where the kernel shapes the link.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const [folder, rate, delay, address = '127.0.0.1'] = process.argv.slice(2)
const bytesPerSecond = Number(rate)
const delayMs = Number(delay)
const CHUNK_BYTES = 64 * 1024
/** Keys of a page of a listing. */
const PAGE = 1000
const HEAD_END = '\r\n\r\n'
const objects = new Map()
let keys
let sentBytes = 0
/** When the link has carried what was given to it, ms. */
let busyUntilMs = 0

function find(key) {
  let object = objects.get(key)
  if (object === undefined) {
    const path = join(folder, key)
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined
    const bytes = readFileSync(path)
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

/** Answers with a text at once, in one piece. */
function say(socket, status, type, text) {
  const length = Buffer.byteLength(text)
  socket.write(`HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${length}${HEAD_END}${text}`)
}

/** `head`: without the empty line behind it. */
async function answer(socket, head) {
  const [, method, target] = /^(\S+) (\S+) /.exec(head)
  const url = new URL(target, 'http://store')
  if (url.pathname === '/-/sent') return say(socket, '200 OK', 'text/plain', `${sentBytes}`)
  await sleep(delayMs)
  const key = decodeURIComponent(url.pathname).split('/').slice(2).join('/')
  if (key === '') return say(socket, '200 OK', 'application/xml', list(url.searchParams))
  const object = find(key)
  if (object === undefined) return say(socket, '404 Not Found', 'text/plain', '')
  const match = /\r\nrange: *bytes=(\d+)-(\d*)/i.exec(head)
  const { bytes, etag } = object
  const first = match ? Number(match[1]) : 0
  const last = match?.[2] ? Math.min(Number(match[2]), bytes.length - 1) : bytes.length - 1
  let text = `HTTP/1.1 ${match ? '206 Partial Content' : '200 OK'}\r\netag: "${etag}"\r\ncontent-length: ${last + 1 - first}\r\naccept-ranges: bytes\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n`
  if (match) text += `content-range: bytes ${first}-${last}/${bytes.length}\r\n`
  socket.cork()
  socket.write(`${text}\r\n`)
  for (let at = first; method !== 'HEAD' && at <= last && !socket.destroyed; at += CHUNK_BYTES) {
    const chunk = bytes.subarray(at, Math.min(at + CHUNK_BYTES, last + 1))
    await carry(chunk.length)
    sentBytes += chunk.length
    socket.write(chunk)
    socket.uncork() // the head goes with the first of the body
  }
  socket.uncork()
}

/** Requests of one connection follow each other. */
function serve(socket) {
  let asked = ''
  let answering = Promise.resolve()
  socket.setNoDelay()
  socket.on('error', () => socket.destroy())
  socket.on('data', (bytes) => {
    asked += bytes.toString('latin1')
    for (let end = asked.indexOf(HEAD_END); end !== -1; end = asked.indexOf(HEAD_END)) {
      const head = asked.slice(0, end)
      asked = asked.slice(end + HEAD_END.length)
      answering = answering.then(() => answer(socket, head))
      if (/\r\nconnection: *close/i.test(head)) answering = answering.then(() => void socket.end())
    }
  })
}

const server = createServer(serve)
server.listen({ port: 0, host: address, backlog: 2048 }, () => console.log(server.address().port))
