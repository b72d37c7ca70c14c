/** A node that has what is wanted, and how busy it is. */
interface PeerLoad {
  readonly node: string
  /** Transfers that it serves at present. */
  readonly transfers: number
}

/**
 * Orders peers for a transfer: the least loaded first. Equal ones are ordered by a hash with the asking node, so
 * that a hundred nodes that start at once do not all ask the same peer.
 */
export function rankPeers<T extends PeerLoad>(peers: readonly T[], askingNode: string): readonly T[] {
  return [...peers].sort(
    (a, b) =>
      a.transfers - b.transfers ||
      hash(`${askingNode}\0${b.node}`) - hash(`${askingNode}\0${a.node}`) ||
      (a.node < b.node ? -1 : 1),
  )
}

/**
 * Orders nodes that stage one dataset side by side by who is to read this part from the store: the first does, the
 * others take it from that one. If a node is gone, the next one answers for its parts and no other part moves
 * (rendezvous hashing).
 */
export function rankOwners(nodes: readonly string[], key: string, offset: number): readonly string[] {
  return nodes
    .map((node) => ({ node, weight: hash(`${node}\0${key}\0${offset}`) }))
    .sort((a, b) => b.weight - a.weight || (a.node < b.node ? -1 : 1))
    .map(({ node }) => node)
}

/** 32-bit FNV-1a, mixed once more, because neighbouring names differ in their last characters only. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
