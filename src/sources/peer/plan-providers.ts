import { planPassing, rankOwners, TAKERS_IN_HASTE } from '../../policy/placement.js'

/** A node that may supply parts. Plain data, so that it can be passed to a thread. */
export interface Provider {
  readonly node: string
  readonly url: string
  /** The ready copy to keep there while it is read; absent: a staging, which is never evicted. */
  readonly copyId?: string
}

/** A node that stages the dataset, or has given up staging it. */
export interface Stager extends Provider {
  readonly isStaging: boolean
  /** It began earlier than this node, or gave up: it may have objects that this node is to read from the store. */
  readonly mayHave: boolean
}

/** The nodes that may be asked for parts of a dataset right now. */
export interface Providers {
  /** Nodes that have everything, best first. */
  readonly ready: readonly Provider[]
  /** Nodes that have some of it and may be fetching more, including this one unless others cannot reach it. */
  readonly stagers: readonly Stager[]
}

/** A node to ask for a part, and whether it is worth waiting for it to fetch the part. */
export interface Asked {
  readonly provider: Provider
  readonly isWaitedFor: boolean
}

/** A part, and the node that is to have it. */
export interface PlannedPart {
  readonly node: string
  readonly key: string
  readonly offset: number
  /** The part is needed now: the node that reads it is asked before those that pass it on. Default false. */
  readonly isWanted?: boolean
}

/**
 * Plans which nodes to ask for a part before the store, in order. One of the staging nodes reads the part from the
 * store (`rankOwners`), unless a node has everything already; the others pass the part on (`planPassing`). Each node
 * waits only for nodes before itself in the part's order, so that no two nodes ever wait for each other, even if they
 * know different nodes. A node that staged with the others keeps its place once it is ready. Objects that a staging
 * read before it knew of this node, or before it gave up, are taken from there.
 */
export function planProviders({ ready, stagers }: Providers, part: PlannedPart): readonly Asked[] {
  const { node, key, offset, isWanted = false } = part
  const byName = new Map(stagers.map((stager) => [stager.node, stager]))
  const staging = stagers.filter(({ isStaging }) => isStaging).map((stager) => stager.node)
  const owners = rankOwners(staging, key, offset)
  const own = owners.indexOf(node)
  const before = own === -1 ? owners : owners.slice(0, own)
  const whole = ready.filter((provider) => byName.get(provider.node)?.isStaging !== true)
  const place = [whole.length + before.length, Math.max(1, whole.length)] as const
  const inHaste = isWanted ? planPassing(...place, TAKERS_IN_HASTE) : []
  const givers = [...new Set([...inHaste, ...planPassing(...place)])]
    .filter((position) => position >= whole.length)
    .map((position) => byName.get(before[position - whole.length]!)!)
  const others = stagers.filter((stager) => stager.mayHave && !givers.includes(stager))
  return [
    ...givers.map((provider) => ({ provider, isWaitedFor: true })),
    ...ready
      .filter(({ node: name }) => givers.every((giver) => giver.node !== name))
      .map((provider) => ({ provider, isWaitedFor: false })),
    ...(ready.length > 0 ? [] : others).map((provider) => ({ provider, isWaitedFor: false })),
  ]
}
