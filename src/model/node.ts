import type { CachePolicy, DiskUsage } from './policy.js'

/** A machine (or a second agent on one machine) with one cache root, as it last described itself. */
export interface NodeEntry {
  readonly node: string
  readonly cacheRoot: string
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** Unix epoch in ms. */
  readonly seenAtMs: number
  /** Which cache root on which machine the name belongs to; absent = nobody has claimed it yet. */
  readonly identity?: NodeIdentity | undefined
  /** The agent that serves the node's copies; null = stopped, absent = never had one (or: leave as it is). */
  readonly agent?: NodeAgent | null | undefined
}

/** What a node's name stands for. Names of hosts are for people; the two ids are random, and decide. */
export interface NodeIdentity {
  /** Of the cache root, as in its marker file. */
  readonly cacheId: string
  readonly machine: MachineIdentity
}

/** A machine. */
export interface MachineIdentity {
  readonly id: string
  /** Its name, for messages. */
  readonly host: string
  /** False: the id is new after every boot, so that another one proves nothing. */
  readonly isLasting: boolean
}

/** Whether two descriptions may be of one machine. */
export function isSameMachine(a: MachineIdentity, b: MachineIdentity): boolean {
  return a.id === b.id || !a.isLasting || !b.isLasting
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

/** Whether the node has an agent that reported lately. */
export function isAgentAlive(
  node: NodeEntry,
  nowMs: number,
): node is NodeEntry & { readonly agent: NodeAgent } {
  return node.agent != null && nowMs - node.agent.seenAtMs < AGENT_SILENCE_MS
}

/** The URLs of all agents that are alive, by node. */
export function agentUrls(nodes: readonly NodeEntry[], nowMs: number): ReadonlyMap<string, string> {
  return new Map(
    nodes.filter((entry) => isAgentAlive(entry, nowMs)).map(({ node, agent }) => [node, agent.url]),
  )
}
