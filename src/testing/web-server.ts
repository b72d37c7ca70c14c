import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { listenLocally } from './listen-locally.js'

/** A web server whose files and answers a test chooses. */
export interface WebServer {
  readonly origin: string
  /** By percent-encoded path. */
  readonly files: Map<string, Buffer>
  readonly requests: IncomingMessage[]
  answersRanges: boolean
  hasEtags: boolean
  hasWeakEtags: boolean
  /** Answers a request for this path with this status instead of a file. */
  readonly refused: Map<string, number>
  /** Target path by path. */
  readonly redirects: Map<string, string>
  close(): Promise<void>
}

/** Starts one on a free port of loopback. */
export async function startWebServer(): Promise<WebServer> {
  const server = createServer((request, response) => {
    web.requests.push(request)
    const path = request.url!.replace(/\?.*/, '')
    const target = web.redirects.get(path)
    if (target !== undefined) {
      response.writeHead(302, { location: target }).end()
      return
    }
    const body = web.files.get(path)
    if (body === undefined || web.refused.has(path)) {
      response.writeHead(web.refused.get(path) ?? 404).end()
      return
    }
    const etag = `${web.hasWeakEtags ? 'W/' : ''}"${createHash('md5').update(body).digest('hex')}"`
    if (web.hasEtags) response.setHeader('etag', etag)
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    const ifRange = request.headers['if-range']
    const isSame = ifRange === undefined || (ifRange === etag && !web.hasWeakEtags)
    const isRange = from !== undefined && web.answersRanges && isSame
    const part = isRange ? body.subarray(Number(from), Number(to) + 1) : body
    if (isRange) response.setHeader('content-range', `bytes ${from}-${to}/${body.length}`)
    response.writeHead(isRange ? 206 : 200, { 'content-length': part.length })
    response.end(request.method === 'HEAD' ? undefined : part)
  })
  const port = await listenLocally(server)
  const web: WebServer = {
    origin: `http://127.0.0.1:${port}`,
    files: new Map(),
    requests: [],
    answersRanges: true,
    hasEtags: true,
    hasWeakEtags: false,
    refused: new Map(),
    redirects: new Map(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return web
}
