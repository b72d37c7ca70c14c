import type { NodeEntry } from '../../model/node.js'
import { findShare } from '../../policy/shares.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { measureNodeUsage } from './node-usage.js'

/** What a node guarantees to whoever asks, and how much of it is left. */
export interface OwnShare {
  readonly node: string
  /** The share that counts for them there; null: the node has shares, and none is theirs. */
  readonly party: string | null
  readonly guaranteedBytes: number
  readonly usedBytes: number
  readonly leftBytes: number
}

/** Nodes of a large cluster are not all measured: the record goes through every copy of each. */
const MAX_NODES = 50

/**
 * How the shares of the parties stand on nodes that have shares, most room first. `preferred` are measured in any case,
 * of the others those with most free space.
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
