import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ListenOptions, type Server } from 'node:net'

/** Outside 32768 to 60999, from which Linux picks ports for connections and for servers on port 0. */
const [LOWEST_PORT, END_PORT] = [20_000, 30_000]

/**
 * Finds a free port of the loopback address and keeps it for this process, so it is still free when the server starts,
 * and when it starts again: Linux does not assign it to other programs, and no other test gets it before this process
 * ends. (Python: `free_port` of feed_support.)
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST_PORT, END_PORT)
    const claim = await listen({ path: claimOf(port) })
    if (claim === undefined) continue
    claim.unref()
    const probe = await listen({ port, host: '127.0.0.1' })
    if (probe === undefined) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
}

/** Name of the abstract socket that claims a port: the kernel forgets it with the process, however that ends. */
export function claimOf(port: number): string {
  return `\0dsc-test-port-${port}`
}

/** Undefined: the address is taken. */
async function listen(address: ListenOptions): Promise<Server | undefined> {
  const server = createServer().listen(address)
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return undefined
  }
}
