import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { agentUrls } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { type AgentAccess, prepareOnNode, type RemotelyPrepared } from './agent-client.js'
import type { PrepareCall } from './prepare-route.js'

/** A dataset for agents to stage, and how. */
export type NodesRequest = Pick<
  PrepareCall,
  'dataset' | 'lease' | 'isRefresh' | 'isPrefetch' | 'bandwidthBytesPerSecond'
>

/** Ends and watches the work of agents. */
export interface Ways {
  readonly signal: AbortSignal
  readonly onProgress: (node: string, progress: PrepareProgress) => void
}

/** Finds the agents, and what they are asked with. */
export interface ClusterWays extends Ways {
  readonly record: RecordStore
  readonly access: AgentAccess
}

/** The result of preparing on one node. */
export type NodeOutcome =
  | { readonly node: string; readonly outcome: 'ready'; readonly prepared: RemotelyPrepared }
  | { readonly node: string; readonly outcome: 'failed'; readonly error: DscError }

/**
 * Asks the agents of many nodes to stage a dataset in parallel: each downloads a part from the source and the rest from
 * the other nodes. Resolves with one outcome per node, in the given order; a failing node does not hold up the others.
 * Rejects with AGENT_UNREACHABLE before anything begins if a named node has no reporting agent.
 */
export async function prepareOnNodes(
  options: NodesRequest &
    ClusterWays & {
      /** Undefined: every node whose agent reports. */
      readonly nodes?: readonly string[] | undefined
    },
): Promise<readonly NodeOutcome[]> {
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
  return Promise.all([...urls].map(([node, url]) => tryOnNode(options, { node, url }, call)))
}

/** Asks the agent of `node` to prepare a dataset there; a failure there is an outcome. */
export async function tryOnNode(
  { access, signal, onProgress }: Omit<ClusterWays, 'record'>,
  { node, url }: { readonly node: string; readonly url: string },
  call: PrepareCall,
): Promise<NodeOutcome> {
  try {
    const prepared = await prepareOnNode({
      ...{ node, url, access, signal, call },
      onProgress: (progress) => onProgress(node, progress),
    })
    return { node, outcome: 'ready', prepared }
  } catch (error) {
    if (!(error instanceof DscError)) throw error
    return { node, outcome: 'failed', error }
  }
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
