import { pipeline } from 'node:stream/promises'
import type { Cache } from '../../cache/cache.js'
import { formatRemoteUrl } from '../../sources/peer-wire.js'
import type { Metrics } from '../metrics/metrics.js'
import type { RouteCall } from '../server/agent-server.js'
import type { LocalCopies, Range } from './local-copies.js'
import { sendCopyFile } from './send-copy-file.js'
import { parseRange } from './serve-object.js'

/** Answers `GET /v1/datasets/<name>/`: the files of the newest ready copy, one JSON line each. */
export async function serveRemoteIndex(
  copies: LocalCopies,
  { parameters, response }: RouteCall,
): Promise<void> {
  const dataset = parameters[0]!
  const found = await copies.listFiles(dataset)
  if (!found) {
    response.writeHead(404).end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  await pipeline(function* () {
    for (const { key, sizeBytes } of found) {
      const path = `files/${key.split('/').map(encodeURIComponent).join('/')}`
      yield `${JSON.stringify({ key, sizeBytes, url: formatRemoteUrl(dataset) + path })}\n`
    }
  }, response)
}

/** Answers `GET /v1/datasets/<name>/files/<key>`: looks the key up in the manifest, which knows the path. */
export async function serveRemoteFile(
  {
    copies,
    metrics,
    cache,
  }: { readonly copies: LocalCopies; readonly metrics: Metrics; readonly cache: Pick<Cache, 'root'> },
  { request, response, parameters }: RouteCall,
): Promise<void> {
  const [dataset = '', key = ''] = parameters
  const found = await copies.findKey(dataset, key)
  if (!found) {
    response.writeHead(404).end()
    return
  }
  const sizeBytes = found.entry.sizeBytes
  const range = parseRange(request.headers.range, sizeBytes)
  if (range === undefined) {
    response.writeHead(416, { 'content-range': `bytes */${sizeBytes}` }).end()
    return
  }
  if (request.method === 'HEAD') {
    response.writeHead(...headOf(range, { request, sizeBytes })).end()
    return
  }
  await sendCopyFile({ root: cache.root, copy: found.copy, path: found.path, range }, response, () => {
    response.writeHead(...headOf(range, { request, sizeBytes }))
  })
  metrics.add('dsc_sent_bytes_total', { dataset }, range.length)
}

function headOf(
  { offset, length }: Range,
  { request, sizeBytes }: Pick<RouteCall, 'request'> & { readonly sizeBytes: number },
): [number, Record<string, string | number>] {
  const isPart = request.headers.range !== undefined
  return [
    isPart ? 206 : 200,
    {
      'content-length': length,
      'content-type': 'application/octet-stream',
      ...(isPart ? { 'content-range': `bytes ${offset}-${offset + length - 1}/${sizeBytes}` } : {}),
    },
  ]
}
