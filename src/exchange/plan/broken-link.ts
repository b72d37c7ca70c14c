/** A rank's report that its connection to another broke, as the rendezvous sees it. */
interface BrokenLink {
  /** Since the report came. Milliseconds. */
  readonly forMs: number
  /** Whether the other end has said anything to the rendezvous since then. */
  readonly isOtherEndHeard: boolean
}

/** What broke: only the link, or the rank at its other end. */
type LinkVerdict = 'wait' | 'link' | 'rank'

/** A dead process's line to the rendezvous closes within this time, even if its last words are still on their way. */
const DEATH_MS = 500
/** Twice the time between heartbeats: who is silent for so long does not run. */
const SILENCE_MS = 2000

/**
 * Judges a broken link. A rank whose line to the rendezvous closes is lost at once and never comes here.
 *
 * | reported for | other end heard since | verdict |
 * |---|---|---|
 * | < 500 ms | – | wait |
 * | ≥ 500 ms | yes | link: both ends live |
 * | < 2 s | no | wait |
 * | ≥ 2 s | no | rank: the other end is frozen |
 */
export function judgeBrokenLink({ forMs, isOtherEndHeard }: BrokenLink): LinkVerdict {
  if (isOtherEndHeard) return forMs < DEATH_MS ? 'wait' : 'link'
  return forMs < SILENCE_MS ? 'wait' : 'rank'
}
