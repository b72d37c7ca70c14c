import type { NodeEntry } from '../../model/node.js'
import { findShare } from '../../policy/shares.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { measureNodeUsage } from './node-usage.js'

/** The share that a node guarantees to the caller, and what is left of it. */
export interface OwnShare {
  readonly node: string
  /** The party whose share applies to the caller on that node; null: the node has shares, but none applies. */
  readonly party: string | null
  readonly guaranteedBytes: number
  readonly usedBytes: number
  readonly leftBytes: number
}

/** Maximum number of nodes to measure: for each, the record goes through all its copies. */
const MAX_NODES = 50

/**
 * The state of the parties' shares on nodes that have shares, most room first. `preferred` nodes are measured first,
 * then those with the most free space.
 */
export async function findOwnShares(
  record: Pick<RecordStore, 'sumCopies' | 'nowMs'>,
  nodes: readonly NodeEntry[],
  asked: { readonly parties: readonly string[]; readonly preferred: readonly string[] },
): Promise<readonly OwnShare[]> {
  const { parties, preferred } = asked
  const rankOf = ({ node, disk }: NodeEntry) =>
    preferred.includes(node) ? Number.POSITIVE_INFINITY : disk.freeBytes
  const measured = nodes
    .filter(({ policy }) => policy.shares !== undefined)
    .toSorted((a, b) => (rankOf(a) === rankOf(b) ? 0 : rankOf(b) - rankOf(a)))
    .slice(0, MAX_NODES)
  const found: OwnShare[] = []
  for (const { node, policy, disk } of measured) {
    const party = findShare(policy.shares, parties)
    const sums = await record.sumCopies({ node }, record.nowMs())
    const standing = measureNodeUsage(policy, disk, sums).shares.find((share) => share.party === party)
    if (!standing) continue
    const { guaranteedBytes, usedBytes } = standing
    found.push({
      node,
      party,
      guaranteedBytes,
      usedBytes,
      leftBytes: Math.max(0, guaranteedBytes - usedBytes),
    })
  }
  return found.toSorted((a, b) => b.leftBytes - a.leftBytes)
}
