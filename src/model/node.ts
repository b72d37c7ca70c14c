import type { CachePolicy, DiskUsage } from './policy.js'

/** A machine (or a second agent on one machine) with one cache root, as it last described itself. */
export interface NodeEntry {
  readonly node: string
  readonly cacheRoot: string
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** Unix epoch in ms. */
  readonly seenAtMs: number
  /** The agent that serves the node's copies; null = stopped, absent = never had one (or: leave as it is). */
  readonly agent?: NodeAgent | null
}

/** An agent as it last reported. It counts as alive for `AGENT_SILENCE_MS` after that. */
export interface NodeAgent {
  /** `http://host:port` that other nodes reach it at. */
  readonly url: string
  /** Unix epoch in ms. */
  readonly seenAtMs: number
}

/** An agent that has not reported for so long is not asked for anything. Agents report every 10 s. */
const AGENT_SILENCE_MS = 45_000

export function isAgentAlive(
  node: NodeEntry,
  nowMs: number,
): node is NodeEntry & { readonly agent: NodeAgent } {
  return node.agent != null && nowMs - node.agent.seenAtMs < AGENT_SILENCE_MS
}
