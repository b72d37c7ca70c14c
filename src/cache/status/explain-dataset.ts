import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { findCandidates } from '../../policy/plan-eviction.js'
import { type EvictionRank, findEvictionRank, findKeepers, type Keeper } from './explain-copy.js'
import type { StripedLayout } from './find-layouts.js'

/** Why one copy is where it is. */
export interface CopyExplanation {
  readonly copy: CopyUse
  /** What brought it here; undefined when the history no longer says. */
  readonly origin: RecordEvent | undefined
  readonly keepers: readonly Keeper[]
  readonly leases: readonly PlacedLease[]
  /** Its place in the order of eviction; undefined when something keeps it. */
  readonly rank: EvictionRank | undefined
}

/** One copy that would be evicted if room were needed. */
interface NextVictim {
  readonly copyId: string
  readonly dataset: string
  readonly node: string
  readonly bytes: number
  readonly lastUsedAtMs: number
  readonly reason: string
}

/** Why a dataset is here, is gone, or never came. */
export interface DatasetExplanation {
  readonly dataset: string
  readonly copies: readonly CopyExplanation[]
  /** How it lies on several nodes in stripes, if it does. */
  readonly layouts: readonly StripedLayout[]
  /** The last of each: what took a copy away, refused one, or failed. */
  readonly lastEvicted: RecordEvent | undefined
  readonly lastRefused: RecordEvent | undefined
  readonly lastFailed: RecordEvent | undefined
  /** Who would go next on each node that matters, in order. */
  readonly nextVictims: readonly NextVictim[]
}

const ORIGINS: readonly string[] = ['staged', 'adopted']
const NEXT_VICTIMS = 5

/** Explains a dataset from its events (newest first) and all copies and leases of the nodes that matter. */
export function explainDataset(
  dataset: string,
  known: {
    readonly copies: readonly CopyUse[]
    readonly layouts: readonly StripedLayout[]
    readonly leases: readonly PlacedLease[]
    readonly events: readonly RecordEvent[]
  },
): DatasetExplanation {
  const own = known.copies.filter((copy) => copy.dataset === dataset)
  const byNode = Map.groupBy(known.copies, (copy) => copy.node)
  const events = known.events.filter((event) => event.dataset === dataset)
  const mentioned = new Set([...own.map((copy) => copy.node), ...events.map((event) => event.node)])
  return {
    dataset,
    copies: own.map((copy) => ({
      copy,
      origin:
        events.find((event) => event.copyId === copy.copyId && ORIGINS.includes(event.kind)) ??
        events.find((event) => event.copyId === copy.copyId && event.kind.startsWith('staging-')),
      keepers: findKeepers(copy),
      leases: known.leases.filter((lease) => lease.copyId === copy.copyId),
      rank: findEvictionRank(copy, byNode.get(copy.node) ?? []),
    })),
    layouts: known.layouts.filter((layout) => layout.dataset === dataset),
    lastEvicted: events.find((event) => event.kind === 'evicted' || event.kind === 'forgotten'),
    lastRefused: events.find((event) => event.kind === 'refused'),
    lastFailed: events.find((event) => event.kind === 'staging-failed'),
    nextVictims: [...mentioned].flatMap((node) =>
      findCandidates(byNode.get(node) ?? [])
        .slice(0, NEXT_VICTIMS)
        .map(({ copy, reason }) => ({
          copyId: copy.copyId,
          dataset: copy.dataset,
          node,
          bytes: copy.chargedBytes,
          lastUsedAtMs: copy.lastUsedAtMs,
          reason,
        })),
    ),
  }
}
