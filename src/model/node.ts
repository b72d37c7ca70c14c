import type { CachePolicy, DiskUsage } from './policy.js'

/** A machine (or a second agent on one machine) with one cache root, as last reported. */
export interface NodeEntry {
  readonly node: string
  readonly cacheRoot: string
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** Unix epoch in ms. */
  readonly seenAtMs: number
  /** The cache root and machine that own the name; absent = not claimed yet. */
  readonly identity?: NodeIdentity | undefined
  /** The agent that serves the node's copies; null = stopped, absent = never had one (or: leave unchanged). */
  readonly agent?: NodeAgent | null | undefined
}

/** The identity behind a node's name. Host names are for people; the two random ids decide. */
export interface NodeIdentity {
  /** Of the cache root, as in its marker file. */
  readonly cacheId: string
  readonly machine: MachineIdentity
}

/** A machine. */
export interface MachineIdentity {
  readonly id: string
  /** Name of the machine, for messages. */
  readonly host: string
  /** False: the id changes with every boot, so that a different one proves nothing. */
  readonly isLasting: boolean
}

/** Whether two descriptions may be of the same machine. */
export function isSameMachine(a: MachineIdentity, b: MachineIdentity): boolean {
  return a.id === b.id || !a.isLasting || !b.isLasting
}

/** An agent, as last reported. It counts as alive for `AGENT_SILENCE_MS` after that. */
export interface NodeAgent {
  /** `http://host:port` at which other nodes reach it. */
  readonly url: string
  /** Unix epoch in ms. */
  readonly seenAtMs: number
}

/** An agent without a report for this long gets no requests, ms. Agents report every 10 s. */
const AGENT_SILENCE_MS = 45_000

/** Whether the node has an agent that reported recently. */
export function isAgentAlive(
  node: NodeEntry,
  nowMs: number,
): node is NodeEntry & { readonly agent: NodeAgent } {
  return node.agent != null && nowMs - node.agent.seenAtMs < AGENT_SILENCE_MS
}

/** The URLs of all live agents, by node. */
export function agentUrls(nodes: readonly NodeEntry[], nowMs: number): ReadonlyMap<string, string> {
  return new Map(
    nodes.filter((entry) => isAgentAlive(entry, nowMs)).map(({ node, agent }) => [node, agent.url]),
  )
}
