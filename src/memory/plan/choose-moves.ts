import type { Candidate } from './candidates.js'
import { LiveCurve } from './live-curve.js'

/** How candidates are ranked when several would relieve the fullest event. */
export type Ranking = 'slack' | 'earliest' | 'largest' | 'density'

const COMPARE: Readonly<Record<Ranking, (a: Candidate, b: Candidate) => number>> = {
  slack: (a, b) => b.slackUs - a.slackUs || b.bytes - a.bytes,
  earliest: (a, b) => a.outAfter - b.outAfter || b.bytes - a.bytes,
  largest: (a, b) => b.bytes - a.bytes || b.slackUs - a.slackUs,
  density: (a, b) => (b.useAt - b.outAfter) * b.bytes - (a.useAt - a.outAfter) * a.bytes,
}

/** Ranks candidates; ties go by storage, so that every run ranks alike. */
export function rankCandidates(candidates: readonly Candidate[], ranking: Ranking): Candidate[] {
  const compare = COMPARE[ranking]
  return candidates.toSorted(
    (a, b) => compare(a, b) || a.lifetime.storage - b.lifetime.storage || a.outAfter - b.outAfter,
  )
}

/** Live bytes per event if every candidate were away for all of its idle time: no plan can do better. */
export function emptyAsPossible(liveBytes: readonly number[], candidates: readonly Candidate[]): LiveCurve {
  const curve = new LiveCurve(liveBytes)
  for (const { outAfter, useAt, bytes } of candidates) curve.add(outAfter + 1, useAt - 1, -bytes)
  return curve
}

/**
 * Picks moves until no event exceeds `budgetBytes`: always at the fullest event, the best-ranked candidate that is idle
 * across it. Then drops every pick that later picks made unnecessary, worst-ranked first. Returns undefined if some
 * event cannot be brought under the budget.
 */
export function chooseMoves(
  liveBytes: readonly number[],
  ranked: readonly Candidate[],
  budgetBytes: number,
): Candidate[] | undefined {
  const curve = new LiveCurve(liveBytes)
  const isTaken = new Uint8Array(ranked.length)
  const taken: number[] = []
  let fullest = -1
  let next = 0
  while (curve.highest() > budgetBytes) {
    const event = curve.firstHighest()
    if (event !== fullest) {
      fullest = event
      next = 0
    }
    while (next < ranked.length && (isTaken[next] || !covers(ranked[next]!, event))) next++
    const pick = ranked[next]
    if (!pick) return undefined
    isTaken[next] = 1
    taken.push(next)
    curve.add(pick.outAfter + 1, pick.useAt - 1, -pick.bytes)
  }
  const needed: Candidate[] = []
  for (const at of taken.sort((a, b) => b - a)) {
    const pick = ranked[at]!
    if (curve.highest(pick.outAfter + 1, pick.useAt - 1) + pick.bytes <= budgetBytes)
      curve.add(pick.outAfter + 1, pick.useAt - 1, pick.bytes)
    else needed.push(pick)
  }
  return needed.reverse()
}

function covers(candidate: Candidate, event: number): boolean {
  return candidate.outAfter < event && event < candidate.useAt
}
