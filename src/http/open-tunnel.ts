import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { HttpProxy } from './find-proxy.js'
import { HttpFailure } from './http-failure.js'
import { USER_AGENT } from './user-agent.js'

const HEAD_END = Buffer.from('\r\n\r\n')
const MAX_HEAD_BYTES = 16 * 1024

/** Connects to a proxy. */
export function connectToProxy(proxy: HttpProxy): Socket {
  const { hostname: host, port, isTls } = proxy
  if (!isTls) return connectPlain({ host, port, noDelay: true, autoSelectFamily: true })
  return connectTls({ host, port, servername: isIP(host) === 0 ? host : '' })
}

/**
 * Asks the proxy at the other end of `socket` for a tunnel to `hostname:port`. Resolves when the tunnel is open;
 * rejects if the proxy refuses.
 */
export function openTunnel(
  socket: Socket,
  proxy: HttpProxy,
  target: { readonly hostname: string; readonly port: number },
): Promise<void> {
  const name = isIP(target.hostname) === 6 ? `[${target.hostname}]` : target.hostname
  const place = `${name}:${target.port}`
  const authorization = proxy.authorization ? `proxy-authorization: ${proxy.authorization}\r\n` : ''
  socket.write(
    `CONNECT ${place} HTTP/1.1\r\nhost: ${place}\r\nuser-agent: ${USER_AGENT}\r\n${authorization}\r\n`,
    'latin1',
  )
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0)
    const end = (failure?: Error) => {
      socket.off('data', take).off('error', end).off('close', closed)
      if (failure) reject(failure)
      else resolve()
    }
    const refuse = (what: string) =>
      end(new HttpFailure('HTTP_PROXY_REFUSED', `the proxy ${proxy.url} ${what} when asked for ${place}`))
    const closed = () => refuse('closed the connection')
    const take = (bytes: Buffer) => {
      head = Buffer.concat([head, bytes])
      const at = head.indexOf(HEAD_END)
      if (at === -1 && head.length <= MAX_HEAD_BYTES) return
      const status = /^HTTP\/1\.[01] (\d{3}[^\r\n]*)/.exec(head.toString('latin1', 0, 256))?.[1]
      if (at === -1 || status === undefined) refuse('did not answer as a proxy')
      else if (status.startsWith('2')) {
        socket.pause()
        end()
      } else refuse(`answered ${status.trim()}`)
    }
    socket.on('data', take).on('error', end).on('close', closed)
  })
}
