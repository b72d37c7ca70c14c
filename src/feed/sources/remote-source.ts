import { DscError } from '../../failure/dsc-error.js'
import { createLatencyWindow, type LatencyWindow, planDeadlineMs, planHedgeMs } from '../plan/latency.js'
import { holdersOfSample, type SampleLayout } from '../plan/sample-placement.js'
import type { SampleTable } from '../samples/sample-table.js'
import { connectStorage, type StorageAddress, type StorageClient } from '../storage/storage-client.js'
import type { OnSample, ReadRequest, SampleSource, SampleStatus } from './sample-source.js'

export interface RemoteSourceOptions {
  readonly table: SampleTable
  readonly layout: SampleLayout
  readonly addresses: readonly StorageAddress[]
  readonly arenaFd: number
  readonly token: string | undefined
  /** Read when no storage node can give a sample: the last step of the ladder. */
  readonly fallback: SampleSource | undefined
  readonly nowMs: () => number
}

interface Node {
  readonly address: StorageAddress
  readonly latency: LatencyWindow
  client: Promise<StorageClient> | undefined
  /** Until then the node is not asked: its breaker is open. */
  brokenUntilMs: number
}

const BREAKER_MS = 5000

/**
 * Samples of storage nodes. A request that fails is tried once more on a new connection, then on the other holders
 * of its samples, then in the fallback; the samples come from elsewhere, their order stays.
 */
export function createRemoteSource(options: RemoteSourceOptions): SampleSource {
  const { table, layout, addresses, fallback, nowMs } = options
  const counters = {
    retries: 0,
    hedges: 0,
    failovers: 0,
    corrupt: 0,
    fallback_samples: 0,
    breakers_opened: 0,
  }
  const nodes: Node[] = addresses.map((address) => ({
    address,
    latency: createLatencyWindow(),
    client: undefined,
    brokenUntilMs: 0,
  }))

  let isClosed = false
  const connectNode = async (node: Node): Promise<StorageClient> => {
    if (isClosed) throw new DscError('FEED_GONE', 'the feed is closing')
    const held = await node.client?.catch(() => undefined)
    if (held?.isOpen) return held
    node.client = connectStorage({
      address: node.address,
      token: options.token,
      table,
      arenaFd: options.arenaFd,
    })
    return node.client
  }

  /** Asks one node for samples `wanted` (indexes of the request). Returns those it did not give. */
  const askNode = async (
    node: Node,
    request: ReadRequest,
    wanted: readonly number[],
    onSample: OnSample,
    statuses: Map<number, SampleStatus>,
    hedge: (() => void) | undefined,
    abandonFirst?: (abandon: () => void) => void,
  ): Promise<number[]> => {
    const left = new Set(wanted)
    const client = await connectNode(node)
    const startMs = nowMs()
    const fetch = client.fetch({
      samples: Uint32Array.from(wanted, (i) => request.samples[i]!),
      offsets: Float64Array.from(wanted, (i) => request.offsets[i]!),
      maxBytes: 0xffffffff,
      deadlineMs: planDeadlineMs(node.latency),
      onSample(at, status) {
        const index = wanted[at]!
        if (status === 'ok') {
          left.delete(index)
          onSample(index, status)
        } else {
          if (status === 'corrupt') counters.corrupt++
          statuses.set(index, status)
        }
      },
    })
    abandonFirst?.(() => {
      fetch.abandon(0)
      left.delete(0)
    })
    const timer = hedge && setTimeout(() => left.has(0) && hedge(), planHedgeMs(node.latency))
    try {
      await fetch.done
      node.latency.add(nowMs() - startMs)
      return [...left]
    } catch (error) {
      throw Object.assign(error as Error, { left: [...left] })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Both tries on one node; opens its breaker when both fail. */
  const tryNode = async (
    node: Node,
    request: ReadRequest,
    wanted: readonly number[],
    onSample: OnSample,
    statuses: Map<number, SampleStatus>,
    hedge?: { begin: () => void; onAbandon: (abandon: () => void) => void },
  ): Promise<readonly number[]> => {
    if (nowMs() < node.brokenUntilMs) return wanted
    let left = wanted
    for (let attempt = 0; attempt < 2 && left.length > 0; attempt++) {
      try {
        return await askNode(
          node,
          request,
          left,
          onSample,
          statuses,
          attempt === 0 ? hedge?.begin : undefined,
          hedge?.onAbandon,
        )
      } catch (error) {
        left = (error as { left?: number[] }).left ?? left
        if (attempt === 0) counters.retries++
      }
    }
    if (left.length > 0 && nowMs() >= node.brokenUntilMs) {
      node.brokenUntilMs = nowMs() + BREAKER_MS
      counters.breakers_opened++
    }
    return left
  }

  const tryFallback = async (
    request: ReadRequest,
    wanted: readonly number[],
    onSample: OnSample,
    statuses: Map<number, SampleStatus>,
  ) => {
    if (!fallback || wanted.length === 0) return wanted
    const left = new Set(wanted)
    counters.fallback_samples += wanted.length
    const part: ReadRequest = {
      node: 0,
      samples: Uint32Array.from(wanted, (i) => request.samples[i]!),
      offsets: Float64Array.from(wanted, (i) => request.offsets[i]!),
      isMiss: request.isMiss,
    }
    await fallback
      .read(part, (at, status) => {
        if (status !== 'ok') return void statuses.set(wanted[at]!, status)
        left.delete(wanted[at]!)
        onSample(wanted[at]!, status)
      })
      .catch(() => {})
    return [...left]
  }

  return {
    table,
    layout,
    nodeCount: nodes.length,
    nodeName: (node) => `storage node ${node} (${addresses[node]?.host}:${addresses[node]?.port})`,
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
          if (left.length === 0) break
          left = await tryNode(nodes[other]!, request, left, onSample, statuses)
        }
        return tryFallback(request, left, onSample, statuses)
      }
      const hedge =
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
      if (left.length > 0) {
        counters.failovers++
        left = await elsewhere(left)
      }
      for (const index of [...left, ...((await hedged) ?? [])])
        onSample(index, statuses.get(index) ?? 'unreachable')
    },
    async close() {
      isClosed = true
      for (const node of nodes) (await node.client?.catch(() => undefined))?.close()
      await fallback?.close()
    },
  }
}
