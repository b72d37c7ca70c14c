import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { formatRemoteUrl } from '../stage/peer-wire.js'
import type { LocalCopies } from './local-copies.js'
import type { Metrics } from './metrics.js'
import { sendFile } from './send-file.js'
import { parseRange } from './serve-object.js'

/** Answers `GET /v1/datasets/<name>/`: the files of the newest ready copy, one JSON line each. */
export async function serveRemoteIndex(
  copies: LocalCopies,
  dataset: string,
  response: ServerResponse,
): Promise<void> {
  const found = await copies.listFiles(dataset)
  if (!found) {
    response.writeHead(404).end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  await pipeline(function* () {
    for (const { key, size_bytes } of found) {
      const path = `files/${key.split('/').map(encodeURIComponent).join('/')}`
      yield `${JSON.stringify({ key, bytes: size_bytes, url: formatRemoteUrl(dataset) + path })}\n`
    }
  }, response)
}

/** Answers `GET /v1/datasets/<name>/files/<key>`: the key is looked up in the manifest, which knows the path. */
export async function serveRemoteFile(
  copies: LocalCopies,
  metrics: Metrics,
  dataset: string,
  key: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const found = await copies.findKey(dataset, key)
  if (!found) {
    response.writeHead(404).end()
    return
  }
  const sizeBytes = found.row.size_bytes
  const range = parseRange(request.headers.range, sizeBytes)
  if (range === undefined) {
    response.writeHead(416, { 'content-range': `bytes */${sizeBytes}` }).end()
    return
  }
  const { offset, length } = range
  const isPart = request.headers.range !== undefined
  response.writeHead(isPart ? 206 : 200, {
    'content-length': length,
    'content-type': 'application/octet-stream',
    ...(isPart ? { 'content-range': `bytes ${offset}-${offset + length - 1}/${sizeBytes}` } : {}),
  })
  if (request.method === 'HEAD' || length === 0) {
    response.end()
    return
  }
  await sendFile(found.path, range, response)
  metrics.add('dsc_sent_bytes_total', { dataset }, length)
}
