import { planPassing, rankOwners, TAKERS_IN_HASTE } from '../../policy/placement.js'

/** A node that may supply parts. Plain data, so that a thread can have it. */
export interface Provider {
  readonly node: string
  readonly url: string
  /** The ready copy that is kept there while it is read; absent: a staging, which nobody evicts. */
  readonly copyId?: string
}

/** A node that stages the dataset, or has given up staging it. */
export interface Stager extends Provider {
  readonly isStaging: boolean
  /** It began earlier than this node, or gave up: it may have objects that are this node's to read from the store. */
  readonly mayHave: boolean
}

/** Whom a node may ask for parts of a dataset just now. */
export interface Providers {
  /** Nodes that have everything, best first. */
  readonly ready: readonly Provider[]
  /** Nodes that have a part of it and may be fetching more, this one among them unless others cannot ask it. */
  readonly stagers: readonly Stager[]
}

/** A node to ask for a part, and whether its fetching it is worth waiting for. */
export interface Asked {
  readonly provider: Provider
  readonly isWaitedFor: boolean
}

/** A part, and the node that is to have it. */
export interface PlannedPart {
  readonly node: string
  readonly key: string
  readonly offset: number
  /** Somebody waits for it: whoever reads it is asked before those who pass it on. Default false. */
  readonly isWanted?: boolean
}

/**
 * Whom to ask for a part before the store, in order. One of the nodes that stage is to read the part from the store
 * (`rankOwners`), unless a node has everything already; the others pass the part on (`planPassing`). Each waits only for
 * nodes that stand before itself in the part's order, so that no two nodes ever wait for each other, whatever each
 * knows of the rest. A node that staged with the others keeps its place once it is ready. What a staging has read
 * before it knew of this one, or before it gave up, is taken from there.
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
