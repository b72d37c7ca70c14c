import { Agent, type AgentOptions } from 'node:https'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect } from 'node:tls'
import { findProxy } from './find-proxy.js'
import { connectToProxy, openTunnel } from './open-tunnel.js'

/** For the few requests that a library sends with Node's own client: through the same proxy as all others. */
export class ProxyAgent extends Agent {
  readonly #tls: AgentOptions
  readonly #environment: Readonly<Record<string, string | undefined>>

  constructor(options: AgentOptions, environment: Readonly<Record<string, string | undefined>>) {
    super(options)
    this.#tls = options
    this.#environment = environment
  }

  override createConnection(
    options: ConnectionOptions,
    onConnected?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const { host = 'localhost', port = 443 } = options
    const proxy = findProxy(`https://${host}:${port}`, this.#environment)
    if (proxy === undefined) return super.createConnection(options, onConnected)
    const socket = connectToProxy(proxy)
    openTunnel(socket, proxy, { hostname: host, port }).then(
      () =>
        onConnected?.(
          null,
          connect({ ...this.#tls, ...options, socket, servername: host } as ConnectionOptions),
        ),
      (error: Error) => {
        socket.destroy()
        onConnected?.(error, socket)
      },
    )
    socket.on('error', () => {}) // openTunnel handles it, as does the connection through the tunnel
    return undefined
  }
}
