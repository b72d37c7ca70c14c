import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { isDscError } from '../../failure/dsc-error.js'
import { FAILURES } from '../../failure/failure-table.js'
import { explainSystemError } from '../../failure/system-failure.js'
import type { HostPort } from '../../model/host-port.js'
import { NODE_HEADER } from '../../sources/peer-wire.js'
import type { Metrics } from '../metrics/metrics.js'
import { judgeToken, type Permission, type Token } from './authorize.js'
import type { CopyPass } from './copy-pass.js'
import { findLocalUser } from './local-users.js'
import { isOwnRequest } from './own-name.js'

/** The arguments of a route. `parameters` are the named pieces of the path, decoded. */
export interface RouteCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly parameters: readonly string[]
  readonly query: URLSearchParams
  /** The pass by which it may be asked; absent: the client may do more than a pass allows. */
  readonly pass?: CopyPass | undefined
}

/** A kind of request that the agent answers. */
export interface Route {
  /** For metrics and messages. */
  readonly name: string
  readonly methods: readonly string[]
  /** Matched against the whole path; its groups are the parameters. */
  readonly path: RegExp
  /** Answered without a token. */
  readonly isOpen?: true
  /** Part of the page: also answered to clients with a link. */
  readonly isPage?: true
  /** As the page for users of this machine, where a service has no tokens; a link does not open it. */
  readonly isForUsers?: true
  /** Also answered to clients with a pass for the copy that is its first parameter. */
  readonly isForPass?: true
  readonly answer: (call: RouteCall) => Promise<void>
}

export interface AgentServer {
  /** The actual address: port 0 leaves the choice to the kernel. */
  readonly address: HostPort
  readonly connections: () => number
  /** Accepts no new requests, waits up to `graceMs` for those under way, then ends them. */
  stop(graceMs: number): Promise<void>
}

const MAX_CONNECTIONS = 4096
const MAX_HEADER_BYTES = 16 * 1024
/** How long a client may take to send its request's head, in ms; slower ones are cut off. */
const HEAD_TIMEOUT_MS = 5000
const REQUEST_TIMEOUT_MS = 20_000
/** How long a client may leave its answer unread before it is cut off, in ms. */
const IDLE_TIMEOUT_MS = 60_000

const AT_THE_DOOR =
  'without agent.tokenFile the agent answers its own user and root here; other users ask at its door'

interface ServerOptions {
  readonly listen: HostPort
  readonly node: string
  /** Undefined: every client that reaches it may do everything, or what `users` says. */
  readonly tokens: readonly Token[] | undefined
  /** Judges an `Authorization` header as a pass for a copy; absent: none is good. */
  readonly findPass?: (header: string | undefined, copyId: string) => CopyPass | undefined
  /** Of a service without tokens: users of this machine who may do everything, and what the others may. */
  readonly users?:
    | { readonly all: ReadonlySet<number>; readonly others: () => 'page' | 'metrics' | 'nothing' }
    | undefined
  /** `host:port` that others use to reach it; absent: the address on which it listens. */
  readonly reachedAs?: string | undefined
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly routes: readonly Route[]
  readonly metrics: Metrics
}

/** Starts the agent's HTTP server. Failures of routes become answers here and nowhere else. */
export async function startAgentServer(options: ServerOptions): Promise<AgentServer> {
  const { node, tls, listen } = options
  const server = createLimitedServer(tls, (request, response) => {
    response.setHeader(NODE_HEADER, node)
    void answer(request, response, options)
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen.port, listen.host, resolve)
  })
  const bound = server.address() as { port: number }
  return {
    address: { host: listen.host, port: bound.port },
    connections: () => sockets.size,
    stop: (graceMs) => stopServer(server, sockets, graceMs),
  }
}

/** Accepts nobody new, waits up to `graceMs` for those inside, then cuts them off. */
export async function stopServer(
  server: Server,
  sockets: ReadonlySet<Socket>,
  graceMs: number,
): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, graceMs)
  await closed
  clearTimeout(timer)
}

/** Creates a server that limits each client's connections, header bytes and time. */
export function createLimitedServer(tls: ServerOptions['tls'], listener: RequestListener): Server {
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, connectionsCheckingInterval: 1000 }
  const server: Server = tls
    ? createTlsServer({ ...limits, ...tls }, listener)
    : createServer(limits, listener)
  server.headersTimeout = HEAD_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  server.keepAliveTimeout = 30_000
  server.maxConnections = MAX_CONNECTIONS
  server.timeout = IDLE_TIMEOUT_MS
  return server
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { routes, tokens, users, findPass, metrics, reachedAs }: ServerOptions,
): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  let name = 'none'
  try {
    const found = findRoute(routes, path)
    const isOpen = found?.route.isOpen === true
    const isForUsers = tokens === undefined && found?.route.isForUsers === true
    const isPage = found?.route.isPage ?? isForUsers
    const pass = found?.route.isForPass && findPass?.(request.headers.authorization, found.parameters[0]!)
    const may = isOpen || pass ? 'all' : await judgeRequest(request, { tokens, users })
    const isReading = request.method === 'GET' || request.method === 'HEAD'
    if (may === 'nothing' && tokens !== undefined) refuse(response, 401, 'the token is missing or wrong')
    else if (tokens === undefined && !isOpen && !isOwnRequest(request.headers, reachedAs))
      refuse(response, 403, 'without agent.tokenFile the agent answers programs here only, at localhost')
    else if (may === 'nothing' || (may === 'page' && !isPage) || (may === 'metrics' && !isForUsers))
      refuse(response, 403, tokens === undefined ? AT_THE_DOOR : 'this link opens the page and nothing else')
    else if (may === 'read' && !isReading) refuse(response, 403, 'this token may only read')
    else if (!found) refuse(response, 404, 'there is no such path')
    else if (!found.route.methods.includes(request.method ?? '')) refuse(response, 405, 'method')
    else {
      name = found.route.name
      const { parameters } = found
      await found.route.answer({ request, response, parameters, query: new URLSearchParams(query), pass })
    }
  } catch (error) {
    sendFailure(response, error)
  } finally {
    metrics.add('dsc_requests_total', { route: name, status: String(response.statusCode) })
  }
}

/** A service without tokens listens on loopback alone, where the kernel says whose each connection is. */
async function judgeRequest(
  { headers, socket }: IncomingMessage,
  { tokens, users }: Pick<ServerOptions, 'tokens' | 'users'>,
): Promise<Permission> {
  if (tokens !== undefined || users === undefined) return judgeToken(headers.authorization, tokens)
  const uid = await findLocalUser(socket)
  return uid !== undefined && users.all.has(uid) ? 'all' : users.others()
}

function findRoute(routes: readonly Route[], path: string) {
  for (const route of routes) {
    const match = route.path.exec(path)
    if (!match) continue
    try {
      return { route, parameters: match.slice(1).map((piece) => decodeURIComponent(piece)) }
    } catch {
      return undefined // a malformed escape
    }
  }
  return undefined
}

/** Answers with an error that is no failure of the request's work. */
export function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(JSON.stringify({ error: { message } }))
}

/** Answers with a failure, or cuts the answer short that has begun. */
export function sendFailure(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy() // the client sees that the answer is cut short
    return
  }
  const known = explainSystemError(error)
  const status = statusOfFailure(known ?? error)
  const message = known?.message ?? (error instanceof Error ? error.message : String(error))
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { code: known?.code ?? 'INTERNAL', message, hint: known?.hint } }))
}

/** The HTTP status for a failure. */
export function statusOfFailure(error: unknown): number {
  return isDscError(error) ? FAILURES[error.code].httpStatus : 500
}
