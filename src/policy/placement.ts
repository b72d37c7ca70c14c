import { BoundedMap } from '../model/bounded-map.js'

/** A node that has the wanted data, and how busy it is. */
interface PeerLoad {
  readonly node: string
  /** Number of transfers that it is serving. */
  readonly transfers: number
}

/**
 * Orders peers for a transfer: the least loaded first. Breaks ties by a hash with the asking node, so that a hundred
 * nodes that start at once do not all ask the same peer.
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
 * Orders nodes that stage one dataset together by their turn to read this part from the source: the first one reads it,
 * the others take it from that node. If a node is gone, the next one takes over its parts and no other part moves
 * (rendezvous hashing).
 */
export function rankOwners(nodes: readonly string[], key: string, offset: number): readonly string[] {
  const turn = Math.imul(Math.floor(offset / TURN_BYTES), GOLDEN_TURN)
  const weighed = new Float64Array(nodes.length)
  for (let index = 0; index < nodes.length; index++) {
    const weight = (mix(hashOn(hashOfNode(nodes[index]!), key)) + turn) >>> 0
    weighed[index] = weight * MAX_NODES + index
  }
  weighed.sort()
  const ranked = Array.from(weighed, (value) => nodes[value % MAX_NODES]!).reverse()
  // Equal weights are rare and small, but all nodes must agree on their order.
  for (let at = 1; at < ranked.length; at++) {
    const isEqual = Math.floor(weighed.at(-at)! / MAX_NODES) === Math.floor(weighed.at(-at - 1)! / MAX_NODES)
    if (isEqual && ranked[at - 1]! > ranked[at]!)
      [ranked[at - 1], ranked[at]] = [ranked[at]!, ranked[at - 1]!]
  }
  return ranked
}

/** How many nodes take a part from each node that passes it on: more would share one link, fewer lengthen the path. */
const TAKERS = 2
/** The same for a part that a reader waits for: each node that passes it on takes most of a second. */
export const TAKERS_IN_HASTE = 8

/**
 * The nodes from which the node at `position` of a part's order takes it, nearest first. The first `sources` nodes have
 * the part or read it from the source; the others pass it on, each to `takers`, so that no node sends it to all.
 */
export function planPassing(position: number, sources: number, takers = TAKERS): readonly number[] {
  const givers: number[] = []
  for (let at = position; at >= sources; ) {
    at = Math.floor((at - sources) / takers)
    givers.push(at)
  }
  return givers
}

/** After this many bytes of an object, the order of its nodes starts at another one. */
const TURN_BYTES = 1024 * 1024
/** 2^32 divided by the golden ratio: from any start, these turns spread an object's parts over the whole circle. */
const GOLDEN_TURN = 0x9e3779b1
/** Above any number of nodes; a 32-bit weight and an index below this fit into one number. */
const MAX_NODES = 2 ** 20
/** Hashes of node names with their suffixes: the same names are ranked for every part. */
const known = new BoundedMap<string, number>(10_000)

function hashOfNode(node: string): number {
  return known.getOrMake(node, () => hashOn(FNV_BASIS, `${node}\0`))
}

const FNV_BASIS = 0x811c9dc5

/** 32-bit FNV-1a, mixed once more because neighboring names differ only in their last characters. */
function hash(text: string): number {
  return mix(hashOn(FNV_BASIS, text))
}

function hashOn(from: number, text: string): number {
  let value = from
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  return value
}

function mix(hashed: number): number {
  let value = Math.imul(hashed ^ (hashed >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
