/** The rendezvous's knowledge of one rank. Times in milliseconds. */
export interface RankHealth {
  readonly rank: number
  /** Time since its last heartbeat. */
  readonly silentMs: number
  /** The rank whose data it waits for, and for how long; undefined while it computes. */
  readonly waiting: { readonly forRank: number; readonly sinceMs: number } | undefined
}

/** The rank to warn about, or to give up on. */
interface Suspicion {
  readonly rank: number
  readonly kind: 'suspect' | 'lost'
  readonly forMs: number
  readonly reason: 'sends no heartbeat' | 'makes no progress'
}

/** How long silence or waiting lasts before a warning, and before the end. Milliseconds. */
export interface Patience {
  readonly suspectAfterMs: number
  readonly lostAfterMs: number
}

/** How long a rank may be silent unless the user says otherwise, in milliseconds. */
export const DEFAULT_PATIENCE: Patience = { suspectAfterMs: 5_000, lostAfterMs: 30_000 }

/**
 * Finds the rank that holds up the others. Silence comes first: a frozen process sends nothing. Otherwise waiting ranks
 * point at the rank they wait for, which in a ring mostly waits itself, so the chain is followed to a rank that does
 * not wait. For a circle of waiting ranks it names the one waited for longest.
 */
export function findSuspect(ranks: readonly RankHealth[], patience: Patience): Suspicion | undefined {
  const noticedMs = Math.min(patience.suspectAfterMs, patience.lostAfterMs)
  const silent = ranks.toSorted((a, b) => b.silentMs - a.silentMs)[0]
  if (silent && silent.silentMs >= noticedMs) {
    const { rank, silentMs: forMs } = silent
    return describe({ rank, forMs, reason: 'sends no heartbeat' }, patience)
  }
  const waiting = ranks
    .filter(({ waiting }) => waiting !== undefined)
    .toSorted((a, b) => (b.waiting?.sinceMs ?? 0) - (a.waiting?.sinceMs ?? 0))[0]?.waiting
  if (!waiting || waiting.sinceMs < noticedMs) return undefined
  const seen = new Set<number>()
  let suspect = waiting.forRank
  while (!seen.has(suspect)) {
    seen.add(suspect)
    const next = ranks.find(({ rank }) => rank === suspect)?.waiting
    if (!next) break
    if (seen.has(next.forRank)) {
      suspect = waiting.forRank
      break
    }
    suspect = next.forRank
  }
  return describe({ rank: suspect, forMs: waiting.sinceMs, reason: 'makes no progress' }, patience)
}

function describe(suspected: Omit<Suspicion, 'kind'>, { lostAfterMs }: Patience): Suspicion {
  return { ...suspected, kind: suspected.forMs >= lostAfterMs ? 'lost' : 'suspect' }
}
