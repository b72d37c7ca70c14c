import type { ListenAddress } from '../model/listen-address.js'
import { formatListenAddress } from '../model/listen-address.js'
import type { Cache } from '../stage/cache.js'
import { samplesDirectory } from '../stage/cache-layout.js'
import { keepAgentMetrics } from './agent-metrics.js'
import { startAgentServer } from './agent-server.js'
import { watchArrivingObjects } from './arriving-objects.js'
import { requireProtection } from './authorize.js'
import { openLocalCopies } from './local-copies.js'
import { createMetrics } from './metrics.js'
import { createRoutes } from './routes.js'
import { openSampleServers } from './sample-servers.js'
import { watchNode } from './watch-node.js'

/** A running agent. */
export interface Agent {
  /** URL that other nodes reach it at. */
  readonly url: string
  /** Takes no new requests, lets those under way end within 10 s, and leaves the record. */
  stop(): Promise<void>
}

const GRACE_MS = 10_000

/** Starts the agent of a node. Rejects with AGENT_UNSAFE when it would be open to other machines without a token. */
export async function startAgent(options: {
  readonly cache: Cache
  readonly listen: ListenAddress
  readonly advertise: string | undefined
  readonly hostName: string
  readonly token: string | undefined
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly forgetNodesAfterMs: number | undefined
  readonly note: (sentence: string) => void
}): Promise<Agent> {
  const { cache, listen, token, tls, note } = options
  requireProtection(listen, token)
  const metrics = createMetrics()
  const copies = openLocalCopies(cache.record, cache.node)
  const arriving = watchArrivingObjects()
  const samples = openSampleServers({
    ...{ host: listen.host, token, tls },
    cacheFolder: samplesDirectory(cache.root),
  })
  const stopping = new AbortController()
  let isKnown = false
  const agentMetrics = keepAgentMetrics(cache, metrics, () => server.connections())
  const server = await startAgentServer({
    ...{ listen, token, tls, metrics, node: cache.node },
    routes: createRoutes({
      ...{ cache, copies, arriving, metrics, samples },
      refreshMetrics: () => agentMetrics.refresh(),
      isKnown: () => isKnown,
      stopping: stopping.signal,
    }),
  })
  const isEverywhere = listen.host === '0.0.0.0' || listen.host === '::'
  const reached = { host: isEverywhere ? options.hostName : listen.host, port: server.address.port }
  const url = options.advertise ?? `${tls ? 'https' : 'http'}://${formatListenAddress(reached)}`
  const watch = await watchNode({ cache, url, forgetNodesAfterMs: options.forgetNodesAfterMs, note }).catch(
    async (error: unknown) => {
      await server.stop(0)
      throw error
    },
  )
  isKnown = true
  await agentMetrics.refresh()
  return {
    url,
    async stop() {
      stopping.abort('the agent stops')
      await watch.stop().catch((error: unknown) => note(String(error)))
      await server.stop(GRACE_MS)
      await samples.close()
      arriving.close()
      copies.close()
    },
  }
}
