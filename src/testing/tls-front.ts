import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import { listenLocally } from './listen-locally.js'

/** Terminates TLS on a free port of loopback and forwards to `target`, `http://host:port`. */
export async function startTlsFront(
  target: string,
  certificate: { readonly certFile: string; readonly keyFile: string },
): Promise<{ readonly port: number; close(): void }> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer(
    { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) },
    (outside) => {
      const inside = connect(Number(port), hostname)
      for (const socket of [outside, inside]) {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          sockets.delete(socket)
          outside.destroy()
          inside.destroy()
        })
      }
      outside.pipe(inside).pipe(outside)
    },
  )
  return {
    port: await listenLocally(server),
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
