import type { Cache } from '../cache/cache.js'
import { SAMPLES_FOLDER } from '../cache/cache-layout.js'
import { makeHeld } from '../cache/held-cache.js'
import type { HostPort } from '../model/host-port.js'
import type { HeldFolder } from '../platform/held-folder.js'
import { ArrivingObjects } from './copies/arriving-objects.js'
import { openLocalCopies } from './copies/local-copies.js'
import type { GatewayOptions } from './gateway/gateway.js'
import { GatewayThreads } from './gateway/gateway-threads.js'
import { AgentMetrics } from './metrics/agent-metrics.js'
import { createMetrics, type Metrics } from './metrics/metrics.js'
import { StatusPage } from './page/status-page.js'
import { createRoutes } from './routes.js'
import { openSampleServers } from './samples/sample-servers.js'
import { startAgentServer } from './server/agent-server.js'
import { agentUrl } from './server/agent-url.js'
import { type AgentTokens, requireProtection } from './server/authorize.js'
import { describeExpiry, readExpiryMs } from './server/certificate-expiry.js'
import { type NodeWatch, watchNode } from './watch-node.js'

/** A running agent. */
export interface Agent {
  /** URL that other nodes reach it at. */
  readonly url: string
  /** URL that S3 clients of this machine set as their endpoint; undefined: it has no gateway. */
  readonly gatewayUrl: string | undefined
  /** Takes no new requests, lets those under way end within 10 s, and leaves the record. */
  stop(): Promise<void>
}

/** What the user sets of the gateway; the agent knows the rest. */
export type GatewaySettings = Pick<
  GatewayOptions,
  'listen' | 'declared' | 'keepMs' | 'names' | 'ranges' | 'users'
>

const GRACE_MS = 10_000
const CERTIFICATE_MS = 24 * 3_600_000

/** Starts the agent of a node. Rejects with AGENT_UNSAFE when it would be open to other machines without a token. */
export async function startAgent(options: {
  readonly cache: Cache
  readonly listen: HostPort
  readonly advertise: string | undefined
  readonly hostName: string
  /** Of dsc. */
  readonly version: string
  /** As `--config` names it: threads read it again. */
  readonly configPath: string | undefined
  readonly tokens: AgentTokens | undefined
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly forgetNodesAfterMs: number | undefined
  readonly gateway: GatewaySettings | undefined
  /** Whether other machines may look at the page. Default: this one alone. */
  readonly isPageEverywhere?: boolean
  readonly note: (sentence: string) => void
}): Promise<Agent> {
  const { cache, listen, tokens, tls, note } = options
  requireProtection(listen, tokens)
  const metrics = createMetrics()
  const build = { version: options.version, node_version: process.versions.node, node: cache.node }
  metrics.set('dsc_build_info', build, 1)
  const stopCertificate = tls && watchCertificate(tls.cert, metrics, note)
  const copies = openLocalCopies(cache.record, cache.node)
  const arriving = new ArrivingObjects()
  const tables = holdTables(cache.root, note)
  const samples = openSampleServers({
    host: listen.host,
    token: tokens?.own,
    tls,
    cacheFolder: tables?.path,
  })
  const page = new StatusPage(cache)
  const stopping = new AbortController()
  let watch: NodeWatch | undefined
  const agentMetrics = new AgentMetrics(cache, metrics, () => server.connections())
  const server = await startAgentServer({
    listen,
    tokens: tokens?.accepted,
    tls,
    metrics,
    node: cache.node,
    reachedAs: options.advertise && new URL(options.advertise).host,
    routes: createRoutes({
      cache,
      copies,
      arriving,
      metrics,
      samples,
      tables: tables?.path,
      page,
      pageAccess: { isEverywhere: options.isPageEverywhere === true, hasTokens: tokens !== undefined },
      refreshMetrics: () => agentMetrics.refresh(),
      isReported: () => watch?.isReported() === true,
      stopping: stopping.signal,
      note,
    }),
  })
  const url = agentUrl({ ...options, listen: { host: listen.host, port: server.address.port } })
  const watching = await watchNode({
    cache,
    url,
    forgetNodesAfterMs: options.forgetNodesAfterMs,
    note,
  }).catch(async (error: unknown) => {
    stopCertificate?.()
    await server.stop(0)
    throw error
  })
  watch = watching
  await agentMetrics.refresh()
  const stop = async (gateway: GatewayThreads | undefined) => {
    stopping.abort('the agent stops')
    stopCertificate?.()
    page.close()
    await gateway?.stop(GRACE_MS)
    await watching
      .stop()
      .catch((error: unknown) => note(error instanceof Error ? error.message : String(error)))
    await server.stop(GRACE_MS)
    await samples.close()
    tables?.close()
    arriving.close()
    copies.close()
  }
  const gateway =
    options.gateway &&
    (await GatewayThreads.open({
      ...options.gateway,
      ...{ cache, tokens, note, configPath: options.configPath },
      onCounts: (counts) =>
        counts.forEach(({ name, labels, value }) => void metrics.add(name, labels, value)),
    }).catch(async (error: unknown) => {
      await stop(undefined)
      throw error
    }))
  return { url, gatewayUrl: gateway?.url, stop: () => stop(gateway) }
}

/** Where this agent keeps tables of samples: held, so that nobody leads elsewhere what it writes. */
function holdTables(root: string, note: (sentence: string) => void): HeldFolder | undefined {
  try {
    return makeHeld(root, [SAMPLES_FOLDER])
  } catch (error) {
    note(`lists of samples are not kept: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** Tells every day that the certificate is about to end, and exports when; returns what ends it. */
function watchCertificate(pem: string, metrics: Metrics, note: (sentence: string) => void): () => void {
  const expiresAtMs = readExpiryMs(pem)
  metrics.set('dsc_certificate_expiry_timestamp_seconds', {}, Math.floor(expiresAtMs / 1000))
  const tell = () => {
    const said = describeExpiry(expiresAtMs, Date.now())
    if (said !== undefined) note(`agent.tls: ${said}; renew it, then start the agent anew`)
  }
  tell()
  const timer = setInterval(tell, CERTIFICATE_MS)
  timer.unref()
  return () => clearInterval(timer)
}
