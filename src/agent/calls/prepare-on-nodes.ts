import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'
import { agentUrls } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { type AgentAccess, prepareOnNode, type RemotelyPrepared } from './agent-client.js'
import type { PrepareCall } from './prepare-route.js'

/** The result of preparing on one node. */
export type NodeOutcome =
  | { readonly node: string; readonly outcome: 'ready'; readonly prepared: RemotelyPrepared }
  | { readonly node: string; readonly outcome: 'failed'; readonly error: DscError }

/**
 * Asks the agents of many nodes to stage a dataset in parallel: each downloads a part from the source and the rest from
 * the other nodes. Resolves with one outcome per node, in the given order; a failing node does not hold up the others.
 * Rejects with AGENT_UNREACHABLE before anything begins if a named node has no reporting agent.
 */
export async function prepareOnNodes(options: {
  readonly record: RecordStore
  /** Undefined: every node whose agent reports. */
  readonly nodes: readonly string[] | undefined
  readonly dataset: Dataset
  readonly lease: LeaseRequest
  readonly isRefresh: boolean
  readonly isPrefetch?: boolean | undefined
  /** Overrides each node's own limit. */
  readonly bandwidthBytesPerSecond?: number | undefined
  readonly access: AgentAccess
  readonly onProgress: (node: string, progress: PrepareProgress) => void
  readonly signal: AbortSignal
}): Promise<readonly NodeOutcome[]> {
  const urls = await findAgents(options.record, options.nodes)
  const { dataset, lease, isRefresh, isPrefetch = false, bandwidthBytesPerSecond } = options
  const call: PrepareCall = {
    dataset,
    lease,
    isRefresh,
    isPrefetch: isPrefetch || undefined,
    sharedWith: [...urls.keys()],
    bandwidthBytesPerSecond,
  }
  return Promise.all(
    [...urls].map(async ([node, url]): Promise<NodeOutcome> => {
      try {
        const prepared = await prepareOnNode({
          node,
          url,
          access: options.access,
          signal: options.signal,
          call,
          onProgress: (progress) => options.onProgress(node, progress),
        })
        return { node, outcome: 'ready', prepared }
      } catch (error) {
        if (!(error instanceof DscError)) throw error
        return { node, outcome: 'failed', error }
      }
    }),
  )
}

/** The URLs of the named nodes' agents, in that order; if none is named, of every node whose agent reports. */
export async function findAgents(
  record: RecordStore,
  wanted: readonly string[] | undefined,
): Promise<ReadonlyMap<string, string>> {
  const nowMs = record.nowMs()
  const entries = await record.listNodes()
  const alive = agentUrls(entries, nowMs)
  const missing = (wanted ?? []).filter((node) => !alive.has(node))
  if (missing.length > 0 || alive.size === 0) {
    const described = missing.map((node) => {
      const agent = entries.find((entry) => entry.node === node)?.agent
      return agent
        ? `${node} (silent for ${Math.round((nowMs - agent.seenAtMs) / 1000)} s)`
        : `${node} (never seen)`
    })
    throw new DscError(
      'AGENT_UNREACHABLE',
      missing.length > 0 ? `no agent reports from ${described.join(', ')}` : 'no agent reports from any node',
      { hint: 'start `dsc agent` there, with the same `record:`; dsc status lists the nodes' },
    )
  }
  return wanted === undefined ? alive : new Map([...new Set(wanted)].map((node) => [node, alive.get(node)!]))
}
