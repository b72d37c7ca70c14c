import { existsSync } from 'node:fs'
import type { GrpcServer } from './grpc-server.js'

/** Time between two looks at the socket, which kubelet or a cleanup may remove, in ms. */
const LOOK_MS = 5000

/**
 * Starts a server at the socket `path`, and starts it again whenever the socket is gone or `mustRestart` says so.
 * Returns a function that ends this and removes the socket.
 */
export async function keepServing(options: {
  readonly path: string
  readonly start: () => Promise<GrpcServer>
  readonly mustRestart?: () => boolean
  readonly note: (sentence: string) => void
}): Promise<() => Promise<void>> {
  const { path, start, mustRestart, note } = options
  let server = await start()
  const look = async () => {
    if (existsSync(path) && !mustRestart?.()) return
    server.stop()
    server = await start()
  }
  let looking: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(look).catch((error: Error) => note(error.message))
  }, LOOK_MS)
  return async () => {
    clearInterval(timer)
    await looking
    server.stop()
  }
}
