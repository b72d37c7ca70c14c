/** The ranks that a rank exchanges with, in one level or two. */
export interface Levels {
  /** Ranks on the network, in the order of their ring: one of each host, or all with one level. */
  readonly network: readonly number[]
  /** Ranks of this one's host, ascending; only itself with one level. The first is on the network. */
  readonly host: readonly number[]
}

/** A rank, and the name of its host, which ranks of a job with one level do not send. */
interface PlacedRank {
  readonly rank: number
  readonly hostKey?: string | undefined
}

/** Finds the levels of `rank` among `ranks`, which are ascending. */
export function findLevels(ranks: readonly PlacedRank[], rank: number): Levels {
  const hosts = new Map<string | number, number[]>()
  for (const { rank: member, hostKey } of ranks) {
    const key = hostKey ?? member
    hosts.set(key, [...(hosts.get(key) ?? []), member])
  }
  const all = [...hosts.values()]
  return {
    network: all.map(([first]) => first!),
    host: all.find((members) => members.includes(rank)) ?? [rank],
  }
}
