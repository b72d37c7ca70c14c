/** A rank's report that its connection to another broke, as the rendezvous sees it. */
interface BrokenLink {
  /** Time since the report, in milliseconds. */
  readonly forMs: number
  /** Whether the rendezvous has heard from the other end since then. */
  readonly isOtherEndHeard: boolean
}

/** The broken part: only the link, or the rank at its other end. */
type LinkVerdict = 'wait' | 'link' | 'rank'

/**
 * A dead process's connection to the rendezvous closes within this time, even if its last messages are still on their
 * way, in ms.
 */
const DEATH_MS = 500
/** Twice the interval of heartbeats: a rank that is silent for this long is not running, in ms. */
const SILENCE_MS = 2000

/**
 * Judges a broken link. A rank whose connection to the rendezvous closes is lost at once and never comes here.
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
