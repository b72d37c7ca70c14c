import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Makes a server answer clients that ended their side of the connection after the request (`nc -N`, HTTP/1.0 tools). A
 * fully closed connection looks the same until the server writes to it; `letWait` gives up on it after a while.
 */
export function answerHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true }) // supported by Node, missing from its types
}

/**
 * Lets a client wait for its answer without limit, past the server's `timeout` of `idleMs`: that one is for clients
 * that read nothing. A client that ended its side may be gone, so it is dropped at the timeout.
 */
export function letWait(response: ServerResponse, idleMs: number): void {
  response.on('timeout', (socket: Socket) => {
    if (response.headersSent || socket.readableEnded) socket.destroy()
    else socket.setTimeout(idleMs)
  })
}
