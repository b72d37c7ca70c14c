import { SAMPLES_FOLDER } from '../../cache/cache-layout.js'
import { guardCopies } from '../../cache/guard-copy.js'
import { makeHeld } from '../../cache/held-cache.js'
import { keepClean } from '../../cache/upkeep/keep-clean.js'
import { type Closers, openOrClose } from '../../failure/closers.js'
import type { PlacedLease } from '../../model/lease.js'
import type { HeldFolder } from '../../platform/held-folder.js'
import { ArrivingObjects } from '../copies/arriving-objects.js'
import { openLocalCopies } from '../copies/local-copies.js'
import type { Csi } from '../csi/open-csi.js'
import { tellCopies } from '../csi/tell-copies.js'
import { GatewayThreads } from '../gateway/gateway-threads.js'
import { AgentMetrics } from '../metrics/agent-metrics.js'
import { createMetrics, type Metrics } from '../metrics/metrics.js'
import { StatusPage } from '../page/status-page.js'
import { openSampleServers } from '../samples/sample-servers.js'
import { type AgentServer, startAgentServer } from '../server/agent-server.js'
import { agentUrl } from '../server/agent-url.js'
import { requireProtection } from '../server/authorize.js'
import { describeExpiry, readExpiryMs } from '../server/certificate-expiry.js'
import { judgePass, openPass } from '../server/copy-pass.js'
import type { AgentOptions } from './agent-options.js'
import { openDoors } from './open-doors.js'
import { PodSightings } from './pod-sightings.js'
import { PrivateCopies } from './private-copies.js'
import { createRoutes } from './routes.js'
import { type NodeWatch, watchNode } from './watch-node.js'

/** A running agent. */
export interface Agent {
  /** URL at which other nodes reach it. */
  readonly url: string
  /** URL that S3 clients on this machine set as their endpoint; undefined: the agent has no gateway. */
  readonly gatewayUrl: string | undefined
  /** Path of the socket of the CSI plugin; undefined: the agent has none. */
  readonly csiPath: string | undefined
  /** Accepts no new requests, gives those under way 10 s to finish, and leaves the record. */
  stop(): Promise<void>
}

const GRACE_MS = 10_000
const CERTIFICATE_MS = 24 * 3_600_000

/** Starts the agent of a node. Rejects with AGENT_UNSAFE when it would be open to other machines without a token. */
export async function startAgent(given: AgentOptions): Promise<Agent> {
  requireProtection(given.listen, given.tokens)
  return openOrClose(async (closers) => {
    let csi: Csi | undefined
    const options = { ...given, cache: tellCopies(given.cache, () => csi?.copiesChanged()) }
    const { cache, listen, tls, note } = options
    await guardCopies(cache, note) // before anybody is let in
    const metrics = createMetrics()
    const build = { version: options.version, node_version: process.versions.node, node: cache.node }
    metrics.set('dsc_build_info', build, 1)
    if (tls) closers.add(watchCertificate(tls.cert, metrics, note))
    const page = new StatusPage(cache)
    const privates = new PrivateCopies(() => page.endStreams())
    await privates.look(cache)
    const stopping = new AbortController()
    const endAnswers = () => {
      stopping.abort('the agent stops')
      page.close()
    }
    let watch: NodeWatch | undefined
    const isReported = () => watch?.isReported() === true
    const answering = { metrics, page, privates, isReported, stopping: stopping.signal }
    const { server, agentMetrics } = await openServer(options, answering, closers)
    closers.add(endAnswers)
    const url = agentUrl({ ...options, listen: { host: listen.host, port: server.address.port } })
    watch = await openWatch(options, { url, findCsi: () => csi }, closers)
    await agentMetrics.refresh()
    const gateway = await openGateway(options, metrics, closers)
    csi = await openPlugin(options, privates, closers)
    // Before the doors, so that it ends after them: nobody there waits for a cleanup.
    if (options.cleansUp) closers.add(keepClean(cache, { note, stopping: stopping.signal }))
    await openDoors(options, { metrics, privates, stopping: stopping.signal }, closers)
    const stop = () => {
      endAnswers() // at once: clients of the gateway may take a while
      return closers.close()
    }
    return { url, gatewayUrl: gateway?.url, csiPath: csi?.path, stop }
  })
}

async function openServer(
  options: AgentOptions,
  answering: {
    readonly metrics: Metrics
    readonly page: StatusPage
    readonly privates: PrivateCopies
    readonly isReported: () => boolean
    readonly stopping: AbortSignal
  },
  closers: Closers,
): Promise<{ readonly server: AgentServer; readonly agentMetrics: AgentMetrics }> {
  const { cache, listen, tokens, tls, note } = options
  const { metrics } = answering
  const copies = openLocalCopies(cache.record, cache.node)
  closers.add(() => copies.close())
  const arriving = new ArrivingObjects()
  closers.add(() => arriving.close())
  const held = holdTables(cache.root, note)
  if (held) closers.add(() => held.close())
  const passFor = (copyId: string) => ({ copyId, tokens: tokens?.accepted ?? [], nowMs: cache.nowMs() })
  const samples = openSampleServers({
    ...{ host: listen.host, token: tokens?.own, tls, cacheFolder: held?.path },
    judgePass: (copyId) => (name) => {
      const shown = openPass(name, passFor(copyId))
      return shown && { secrets: shown.signatures, leftMs: shown.pass.expiresAtMs - cache.nowMs() }
    },
  })
  closers.add(() => samples.close())
  const agentMetrics = new AgentMetrics(cache, metrics, () => server.connections())
  const server = await startAgentServer({
    listen,
    tokens: tokens?.accepted,
    findPass: (header, copyId) => judgePass(header, passFor(copyId)),
    users: findUsers(options, answering.privates),
    tls,
    metrics,
    node: cache.node,
    reachedAs: options.advertise && new URL(options.advertise).host,
    routes: createRoutes({
      ...answering,
      cache,
      copies,
      arriving,
      samples,
      tables: held?.path,
      pageAccess: { isEverywhere: options.isPageEverywhere === true, hasTokens: tokens !== undefined },
      refreshMetrics: () => agentMetrics.refresh(),
      note,
    }),
  })
  closers.add(() => server.stop(GRACE_MS))
  return { server, agentMetrics }
}

/** The rights of this machine's users without a token, where a door or readers of a dataset limit them. */
function findUsers(
  { door, cache }: AgentOptions,
  privates: PrivateCopies,
): Parameters<typeof startAgentServer>[0]['users'] {
  const hasReaders = cache.declared?.some(({ readers }) => readers !== undefined) === true
  if (door === undefined && !hasReaders) return undefined
  return {
    all: new Set([0, process.geteuid?.() ?? 0]),
    others: () => (hasReaders ? 'nothing' : privates.isAny ? 'metrics' : 'page'),
  }
}

async function openWatch(
  { cache, forgetNodesAfterMs, note }: AgentOptions,
  { url, findCsi }: { readonly url: string; readonly findCsi: () => Csi | undefined },
  closers: Closers,
): Promise<NodeWatch> {
  const pods = new PodSightings({ listMounted: () => findCsi()?.listPods() })
  const reconcile = async (leases: readonly PlacedLease[]) => findCsi()?.reconcile(leases)
  const watch = await watchNode({ cache, url, forgetNodesAfterMs, pods, reconcile, note })
  const tell = (error: unknown) => note(error instanceof Error ? error.message : String(error))
  closers.add(() => watch.stop().catch(tell))
  return watch
}

async function openGateway(
  { cache, tokens, note, configPath, gateway: settings }: AgentOptions,
  metrics: Metrics,
  closers: Closers,
): Promise<GatewayThreads | undefined> {
  if (settings === undefined) return undefined
  const gateway = await GatewayThreads.open({
    ...settings,
    ...{ cache, tokens, note, configPath },
    onCounts: (counts) => counts.forEach(({ name, labels, value }) => void metrics.add(name, labels, value)),
  })
  closers.add(() => gateway.stop(GRACE_MS))
  return gateway
}

/** Loads gRPC, 60 ms, for agents that need it alone. */
async function openPlugin(
  { cache, csi: settings, version, note }: AgentOptions,
  privates: PrivateCopies,
  closers: Closers,
): Promise<Csi | undefined> {
  if (settings === undefined) return undefined
  const { openCsi } = await import('../csi/open-csi.js')
  const csi = await openCsi({ cache, settings, version, onPrivate: () => privates.note(), note })
  closers.add(() => csi.stop())
  return csi
}

/** Opens the folder of this agent's tables of samples, and holds it, so that nobody can redirect its writes. */
function holdTables(root: string, note: (sentence: string) => void): HeldFolder | undefined {
  try {
    return makeHeld(root, [SAMPLES_FOLDER])
  } catch (error) {
    note(`lists of samples are not kept: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** Exports when the certificate expires and warns every day once that is near; returns a function that stops this. */
function watchCertificate(pem: string, metrics: Metrics, note: (sentence: string) => void): () => void {
  const expiresAtMs = readExpiryMs(pem)
  metrics.set('dsc_certificate_expiry_timestamp_seconds', {}, Math.floor(expiresAtMs / 1000))
  const tell = () => {
    const said = describeExpiry(expiresAtMs, Date.now())
    if (said !== undefined) note(`agent.tls: ${said}; renew it, then restart the agent`)
  }
  tell()
  const timer = setInterval(tell, CERTIFICATE_MS)
  timer.unref()
  return () => clearInterval(timer)
}
