import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { findCandidates } from '../../policy/plan-eviction.js'
import { type EvictionRank, findKeepers, type Keeper } from './explain-copy.js'
import type { StripedLayout } from './find-layouts.js'

/** Why one copy is where it is. */
export interface CopyExplanation {
  readonly copy: CopyUse
  /** The event that brought it here; undefined if the history no longer has it. */
  readonly origin: RecordEvent | undefined
  readonly keepers: readonly Keeper[]
  readonly leases: readonly PlacedLease[]
  /** Its rank in the order of eviction; undefined if it may not be evicted. */
  readonly rank: EvictionRank | undefined
}

/** One copy that would be evicted if room were needed. */
interface NextVictim {
  readonly copyId: string
  readonly dataset: string
  readonly node: string
  readonly diskBytes: number
  readonly lastUsedAtMs: number
  readonly reason: string
}

/** Why a dataset is here, is gone, or never came. */
export interface DatasetExplanation {
  readonly dataset: string
  readonly copies: readonly CopyExplanation[]
  /** Its striped layouts over several nodes, if any. */
  readonly layouts: readonly StripedLayout[]
  /** The last event of each kind: a copy evicted, refused, or failed. */
  readonly lastEvicted: RecordEvent | undefined
  readonly lastRefused: RecordEvent | undefined
  readonly lastFailed: RecordEvent | undefined
  /** The next copies to be evicted on each node concerned, in order. */
  readonly nextVictims: readonly NextVictim[]
}

const ORIGINS: readonly string[] = ['staged', 'adopted']
const NEXT_VICTIMS = 5

/** The copies of a node that would be evicted if room were needed. */
export interface NodeOutlook {
  /** Ranks in the order of eviction, by copy id. */
  readonly ranks: ReadonlyMap<string, EvictionRank>
  /** The first to be evicted, in order. */
  readonly next: readonly NextVictim[]
}

/** The known facts about one dataset. */
interface KnownOfDataset {
  /** Its copies on the nodes asked about. */
  readonly copies: readonly CopyUse[]
  readonly layouts: readonly StripedLayout[]
  readonly leases: readonly PlacedLease[]
  /** Newest first. */
  readonly events: readonly RecordEvent[]
  /** One per node in `findNodesOf`, in the same order. */
  readonly outlooks: ReadonlyMap<string, NodeOutlook>
}

/** Nodes related to a dataset: those of its copies, then those in its history. */
export function findNodesOf({
  copies,
  events,
}: Pick<KnownOfDataset, 'copies' | 'events'>): readonly string[] {
  return [...new Set([...copies, ...events].map(({ node }) => node))]
}

/** Ranks the copies of `dataset` among all copies of a node, and finds the next victims. */
export function foreseeEvictions(dataset: string, copiesOfNode: readonly CopyUse[]): NodeOutlook {
  const candidates = findCandidates(copiesOfNode)
  const ranks = new Map(
    candidates.flatMap(({ copy, reason }, index): [string, EvictionRank][] =>
      copy.dataset === dataset
        ? [[copy.copyId, { rank: index + 1, candidates: candidates.length, reason }]]
        : [],
    ),
  )
  const next = candidates.slice(0, NEXT_VICTIMS).map(({ copy, reason }) => ({
    copyId: copy.copyId,
    dataset: copy.dataset,
    node: copy.node,
    diskBytes: copy.chargedBytes,
    lastUsedAtMs: copy.lastUsedAtMs,
    reason,
  }))
  return { ranks, next }
}

/** Explains a dataset from the facts about it and its nodes. */
export function explainDataset(dataset: string, known: KnownOfDataset): DatasetExplanation {
  const { copies, layouts, events, outlooks } = known
  const leases = Map.groupBy(known.leases, ({ copyId }) => copyId)
  const ofCopies = Map.groupBy(events, ({ copyId }) => copyId)
  return {
    dataset,
    copies: copies.map((copy) => ({
      copy,
      origin: findOrigin(ofCopies.get(copy.copyId) ?? []),
      keepers: findKeepers(copy),
      leases: leases.get(copy.copyId) ?? [],
      rank: outlooks.get(copy.node)?.ranks.get(copy.copyId),
    })),
    layouts,
    lastEvicted: events.find(({ kind }) => kind === 'evicted' || kind === 'forgotten'),
    lastRefused: events.find(({ kind }) => kind === 'refused'),
    lastFailed: events.find(({ kind }) => kind === 'staging-failed'),
    nextVictims: [...outlooks.values()].flatMap(({ next }) => next),
  }
}

function findOrigin(ofCopy: readonly RecordEvent[]): RecordEvent | undefined {
  return (
    ofCopy.find(({ kind, detail }) => ORIGINS.includes(kind) || (kind === 'undone' && 'version' in detail)) ??
    ofCopy.find(({ kind }) => kind.startsWith('staging-'))
  )
}
