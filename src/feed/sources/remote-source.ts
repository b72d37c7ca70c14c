import { DscError } from '../../failure/dsc-error.js'
import { createLatencyWindow, type LatencyWindow, planDeadlineMs, planHedgeMs } from '../plan/latency.js'
import { holdersOfSample, type SampleLayout } from '../plan/sample-placement.js'
import type { SampleTable } from '../samples/sample-table.js'
import type { StorageTls } from '../storage/open-socket.js'
import { connectStorage, type StorageAddress, type StorageClient } from '../storage/storage-client.js'
import type { OnSample, ReadRequest, SampleSource, SampleStatus } from './sample-source.js'

/** Where a storage node listens. */
export interface StorageNodePlace {
  /** Undefined: nowhere as yet. */
  readonly address: StorageAddress | undefined
  /** Asks where it listens now, for it may have been started anew; absent: at its address or not at all. */
  readonly find?: () => Promise<StorageAddress | undefined>
}

export interface RemoteSourceOptions {
  readonly table: SampleTable
  readonly layout: SampleLayout
  readonly nodes: readonly StorageNodePlace[]
  readonly arenaFd: number
  readonly token: string | undefined
  readonly tls?: StorageTls | undefined
  /** Read when no storage node can give a sample: the last step of the ladder. */
  readonly fallback: SampleSource | undefined
  readonly nowMs: () => number
  /** How long after its failure, and after each probe that failed, a node is tried again. Default 5 s. */
  readonly breakerMs?: number
}

interface Node {
  readonly find: StorageNodePlace['find']
  address: StorageAddress | undefined
  readonly latency: LatencyWindow
  client: StorageClient | undefined
  connecting: Promise<StorageClient> | undefined
  /** It failed and is not asked until a connection to it succeeds: its breaker is open. */
  isBroken: boolean
}

/** The missed sample of a request, asked for elsewhere when its node is slow. */
interface Hedge {
  readonly begin: () => void
  readonly onAbandon: (abandon: () => void) => void
}

/** A node gave only part of what it was asked for, or nothing. */
class NodeFailure extends Error {
  readonly left: readonly number[]
  /** It fell silent, rather than hang up. */
  readonly isSilence: boolean

  constructor(left: readonly number[], isSilence: boolean, cause: unknown) {
    super('a storage node failed', { cause })
    this.left = left
    this.isSilence = isSilence
  }
}

const CONNECT_TIMEOUT_MS = 2000

/**
 * Samples of storage nodes. A request that fails is tried once more on a new connection, then on the other holders
 * of its samples, then in the fallback; the samples come from elsewhere, their order stays.
 */
export function createRemoteSource(options: RemoteSourceOptions): SampleSource {
  const { table, layout, fallback, nowMs, breakerMs = 5000 } = options
  const counters = {
    retries: 0,
    hedges: 0,
    failovers: 0,
    corrupt: 0,
    fallback_samples: 0,
    breakers_opened: 0,
  }
  const nodes: Node[] = options.nodes.map(({ address, find }) => ({
    address,
    find,
    latency: createLatencyWindow(),
    client: undefined,
    connecting: undefined,
    isBroken: false,
  }))

  let isClosed = false
  const hasOthers = fallback !== undefined || (layout === 'full' && nodes.length > 1)
  /** The connection of a node; callers that come while it is being made share it. */
  const connectNode = async (node: Node): Promise<StorageClient> => {
    if (isClosed) throw new DscError('FEED_GONE', 'the feed is closing')
    if (node.client?.isOpen) return node.client
    if (!node.address) throw new DscError('FEED_GONE', 'the storage node listens nowhere')
    node.connecting ??= connectStorage({
      address: node.address,
      token: options.token,
      tls: options.tls,
      table,
      arenaFd: options.arenaFd,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    }).finally(() => {
      node.connecting = undefined
    })
    const client = await node.connecting
    node.client = client
    return client
  }

  /** Asks one node for samples `wanted` (indexes of the request). Returns those it did not give. */
  const askNode = async (
    node: Node,
    request: ReadRequest,
    wanted: readonly number[],
    onSample: OnSample,
    statuses: Map<number, SampleStatus>,
    hedge?: Hedge,
  ): Promise<number[]> => {
    const left = new Set(wanted)
    const startMs = nowMs()
    const deadlineMs = planDeadlineMs(node.latency)
    let isFirstAbandoned = false
    let abandonFirst = () => {}
    hedge?.onAbandon(() => {
      isFirstAbandoned = true
      left.delete(0)
      abandonFirst()
    })
    // From before the connection is there: connecting to a node that is down is what takes longest.
    const timer = hedge && setTimeout(() => left.has(0) && hedge.begin(), planHedgeMs(node.latency))
    try {
      const client = await connectNode(node)
      const asked = isFirstAbandoned ? wanted.slice(1) : wanted
      if (asked.length === 0 || request.signal?.aborted) return [...left]
      const fetch = client.fetch({
        samples: Uint32Array.from(asked, (i) => request.samples[i]!),
        offsets: Float64Array.from(asked, (i) => request.offsets[i]!),
        maxBytes: 0xffffffff,
        deadlineMs,
        onSample(at, status) {
          const index = asked[at]!
          if (status === 'ok') {
            left.delete(index)
            onSample(index, status)
          } else {
            if (status === 'corrupt') counters.corrupt++
            statuses.set(index, status)
          }
        },
      })
      if (asked[0] === 0)
        abandonFirst = () => {
          fetch.abandon(0)
          if (left.size === 0) fetch.cancel() // it was asked for nothing else that is still to come
        }
      request.signal?.addEventListener('abort', fetch.cancel)
      await fetch.done.finally(() => request.signal?.removeEventListener('abort', fetch.cancel))
      if (!request.signal?.aborted) node.latency.add(nowMs() - startMs)
      return [...left]
    } catch (cause) {
      throw new NodeFailure([...left], nowMs() - startMs >= Math.min(deadlineMs, CONNECT_TIMEOUT_MS), cause)
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * What of `wanted` the node did not give. A connection that broke is tried once more; a node that said nothing at
   * all is not, when someone else could answer meanwhile. A node that failed is left alone until a probe succeeds.
   */
  const tryNode = async (
    node: Node,
    request: ReadRequest,
    wanted: readonly number[],
    onSample: OnSample,
    statuses: Map<number, SampleStatus>,
    hedge?: Hedge,
  ): Promise<readonly number[]> => {
    if (node.isBroken) return wanted
    let left = wanted
    for (let attempt = 0; attempt < 2 && left.length > 0; attempt++) {
      try {
        return await askNode(node, request, left, onSample, statuses, attempt === 0 ? hedge : undefined)
      } catch (error) {
        if (!(error instanceof NodeFailure)) throw error
        left = error.left
        if (request.signal?.aborted) return left
        if (node.isBroken || (error.isSilence && hasOthers)) break
        if (attempt === 0) counters.retries++
      }
    }
    if (left.length > 0) breakNode(node)
    return left
  }
  const breakNode = (node: Node) => {
    if (node.isBroken || isClosed) return
    node.isBroken = true
    counters.breakers_opened++
    const probe = async () => {
      node.isBroken = !(await canConnect(node))
      if (node.isBroken && !isClosed) setTimeout(probe, breakerMs).unref()
    }
    setTimeout(probe, breakerMs).unref()
  }
  /** Whether the node answers where it listened, else where it listens now. */
  const canConnect = async (node: Node): Promise<boolean> => {
    const connect = () =>
      connectNode(node).then(
        () => true,
        () => false,
      )
    if (await connect()) return true
    const address = await node.find?.().catch(() => undefined)
    if (!address || isClosed) return false
    node.address = address
    return connect()
  }

  const tryFallback = async (
    request: ReadRequest,
    wanted: readonly number[],
    onSample: OnSample,
    statuses: Map<number, SampleStatus>,
  ) => {
    if (!fallback || wanted.length === 0 || request.signal?.aborted) return wanted
    const left = new Set(wanted)
    counters.fallback_samples += wanted.length
    const part: ReadRequest = {
      node: 0,
      samples: Uint32Array.from(wanted, (i) => request.samples[i]!),
      offsets: Float64Array.from(wanted, (i) => request.offsets[i]!),
      isMiss: request.isMiss,
      signal: request.signal,
    }
    await fallback
      .read(part, (at, status, origin = fallback.origin) => {
        if (status !== 'ok') return void statuses.set(wanted[at]!, status)
        left.delete(wanted[at]!)
        onSample(wanted[at]!, status, origin)
      })
      .catch(() => {})
    return [...left]
  }

  for (const node of nodes) if (!node.address) breakNode(node)
  return {
    table,
    layout,
    origin: 'peer',
    nodeCount: nodes.length,
    nodeName: (node) => {
      const address = nodes[node]?.address
      return `storage node ${node} (${address ? `${address.host}:${address.port}` : 'not there'})`
    },
    counters: () => counters,
    async read(request, onSample) {
      const statuses = new Map<number, SampleStatus>()
      const all = Array.from(request.samples.keys())
      const holders = holdersOfSample(layout, nodes.length, request.node)
      const others = holders.slice(1)
      /** The missed sample, asked for elsewhere while its node is slow. */
      let hedged: Promise<readonly number[]> | undefined
      let abandon = () => {}
      const elsewhere = async (wanted: readonly number[]) => {
        let left = wanted
        for (const other of others) {
          if (left.length === 0 || request.signal?.aborted) break
          left = await tryNode(nodes[other]!, request, left, onSample, statuses)
        }
        return tryFallback(request, left, onSample, statuses)
      }
      const hedge: Hedge | undefined =
        request.isMiss && (others.length > 0 || fallback)
          ? {
              begin: () => {
                counters.hedges++
                abandon()
                hedged = elsewhere([0])
              },
              onAbandon: (how: () => void) => {
                abandon = how
              },
            }
          : undefined
      let left = await tryNode(nodes[request.node]!, request, all, onSample, statuses, hedge)
      if (left.length > 0 && !request.signal?.aborted) {
        counters.failovers++
        left = await elsewhere(left)
      }
      for (const index of [...left, ...((await hedged) ?? [])])
        onSample(index, statuses.get(index) ?? 'unreachable')
    },
    async close() {
      isClosed = true
      for (const node of nodes) {
        node.client?.close()
        const late = await node.connecting?.catch(() => undefined)
        late?.close()
      }
      await fallback?.close()
    },
  }
}
