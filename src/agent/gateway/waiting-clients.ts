import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Has a server answer clients that ended their side of the connection once they had asked (`nc -N`, tools of HTTP/1.0).
 * One that closed all of it looks the same until it is written to; `letWait` gives it up after a while.
 */
export function answerHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true }) // Node has it, its types do not
}

/**
 * Lets a client wait for its answer for as long as that takes, past the server's `timeout` of `idleMs`: that is for
 * clients that take nothing. One that ended its side, and may have gone, is let go then.
 */
export function letWait(response: ServerResponse, idleMs: number): void {
  response.on('timeout', (socket: Socket) => {
    if (response.headersSent || socket.readableEnded) socket.destroy()
    else socket.setTimeout(idleMs)
  })
}
