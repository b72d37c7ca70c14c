import http from 'node:http'
import { connect, type Socket } from 'node:net'
import { listenLocally } from './listen-locally.js'

/** A typical company proxy: forwards plain requests and opens tunnels, for clients with the password. */
export interface ForwardProxy {
  readonly port: number
  /** Forwarded requests, `GET http://…` and `CONNECT host:port`. */
  readonly seen: readonly string[]
  close(): void
}

/** Starts a proxy on a free port of loopback; without `password` it is open to everybody. */
export async function startForwardProxy(password?: string): Promise<ForwardProxy> {
  const seen: string[] = []
  const sockets = new Set<Socket>()
  const wanted = password && `Basic ${Buffer.from(`me:${password}`).toString('base64')}`
  const isAllowed = ({ headers }: http.IncomingMessage) =>
    wanted === undefined || headers['proxy-authorization'] === wanted
  const server = http.createServer((request, response) => {
    if (!isAllowed(request)) return void response.writeHead(407).end()
    seen.push(`${request.method} ${request.url}`)
    const { 'proxy-authorization': _, ...headers } = request.headers
    const passed = http.request(request.url!, { method: request.method!, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.rawHeaders)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  server.on('connect', (request: http.IncomingMessage, client: Socket) => {
    client.on('error', () => {})
    if (!isAllowed(request)) return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    seen.push(`CONNECT ${request.url}`)
    const { hostname, port } = new URL(`http://${request.url}`)
    const target = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.pipe(client).pipe(target)
    })
    sockets.add(target)
    target.on('error', () => client.destroy())
  })
  server.on('connection', (socket) => sockets.add(socket))
  const port = await listenLocally(server)
  return {
    port,
    seen,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
