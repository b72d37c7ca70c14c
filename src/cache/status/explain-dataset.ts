import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { EvictionOrder, EvictionRank } from '../../policy/eviction-order.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { StatusSnapshot } from './compose-status.js'
import { findKeepers, type Keeper } from './explain-copy.js'
import type { StripedLayout } from './find-layouts.js'

/** Why one copy is where it is. */
export interface CopyExplanation {
  readonly copy: CopyUse
  /** The event that brought it here; undefined if the history no longer has it. */
  readonly origin: RecordEvent | undefined
  readonly keepers: readonly Keeper[]
  readonly leases: readonly PlacedLease[]
  /** Its rank in the order of eviction; undefined if it may not be evicted, or that of its node was not read. */
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
  /** The next copies to be evicted on each node that was read, in order. */
  readonly nextVictims: readonly NextVictim[]
}

const ORIGINS: readonly string[] = ['staged', 'adopted']

/** The known facts about one dataset. */
interface KnownOfDataset extends Pick<StatusSnapshot, 'copies' | 'layouts' | 'leases' | 'events'> {
  /** Of nodes in `findNodesOf`, in the same order. */
  readonly outlooks: readonly EvictionOrder[]
}

/** When a copy became ready, or was begun; Unix epoch in ms. */
export function findArrivalMs({ readyAtMs, createdAtMs }: CopyUse): number {
  return readyAtMs ?? createdAtMs
}

/** Nodes related to a dataset: those of its copies, then those in its history. */
export function findNodesOf({
  copies,
  events,
}: Pick<KnownOfDataset, 'copies' | 'events'>): readonly string[] {
  return [...new Set([...copies, ...events].map(({ node }) => node))]
}

/** Explains a dataset from the facts about it and its nodes. */
export function explainDataset(dataset: string, known: KnownOfDataset): DatasetExplanation {
  const { copies, layouts, events, outlooks } = known
  const leases = Map.groupBy(known.leases, ({ copyId }) => copyId)
  const ofCopies = Map.groupBy(events, ({ copyId }) => copyId)
  const ranks = new Map(
    outlooks.flatMap((order) => order.ranks.map(({ copyId, ...rank }) => [copyId, rank] as const)),
  )
  return {
    dataset,
    copies: copies.map((copy) => ({
      copy,
      origin: findOrigin(ofCopies.get(copy.copyId) ?? []),
      keepers: findKeepers(copy),
      leases: leases.get(copy.copyId) ?? [],
      rank: ranks.get(copy.copyId),
    })),
    layouts,
    lastEvicted: events.find(({ kind }) => kind === 'evicted' || kind === 'forgotten'),
    lastRefused: events.find(({ kind }) => kind === 'refused'),
    lastFailed: events.find(({ kind }) => kind === 'staging-failed'),
    nextVictims: outlooks.flatMap(({ first }) => first.map(describeVictim)),
  }
}

function describeVictim({ copy, reason }: Victim): NextVictim {
  const { copyId, dataset, node, chargedBytes: diskBytes, lastUsedAtMs } = copy
  return { copyId, dataset, node, diskBytes, lastUsedAtMs, reason }
}

function findOrigin(ofCopy: readonly RecordEvent[]): RecordEvent | undefined {
  return (
    ofCopy.find(({ kind, detail }) => ORIGINS.includes(kind) || (kind === 'undone' && 'version' in detail)) ??
    ofCopy.find(({ kind }) => kind.startsWith('staging-'))
  )
}
