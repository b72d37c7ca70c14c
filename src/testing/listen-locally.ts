import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import type { TestContext } from 'node:test'

/**
 * How long a server of tests keeps an idle connection, in ms. After Node's 5 s it would close connections of a test on a
 * busy machine in the instant in which they are used again, and a test that counts requests would count one twice.
 */
export const IDLE_TIMEOUT_MS = 60_000

/** Lets `server` listen on loopback and returns its port; with a `context`, closes it and its connections after the test. */
export async function listenLocally(
  server: Server | HttpServer,
  context?: Pick<TestContext, 'after'>,
): Promise<number> {
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = IDLE_TIMEOUT_MS
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context?.after(() => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
