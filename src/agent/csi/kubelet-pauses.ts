/** Kubelet's pause after a volume's first refused call, in ms. It doubles with each further one. */
const FIRST_PAUSE_MS = 500
/** Kubelet's longest pause, in ms. */
const LONGEST_PAUSE_MS = 122_000
/** Time without a call after which kubelet has given up a volume, in ms. */
const FORGET_MS = 600_000
/** How long before the last byte kubelet should be back, in ms: estimates of the time left are rough. */
const AHEAD_MS = 30_000
/** Longest pause that is better than a refusal, which pods show as a warning; in ms. */
const SHORT_PAUSE_MS = 1500
/** How much faster than estimated a download may be and still not end before kubelet is back. */
const FASTER = 1.25

/** Decides whether to refuse a held call now, so that kubelet pauses before the last byte arrives and not when it does. */
export function isTimeToPause(times: {
  /** The estimated rest of the download. */
  readonly leftMs: number
  /** How much longer the call can be held. */
  readonly heldMs: number
  /** Kubelet's pause if the call is refused. */
  readonly pauseMs: number
}): boolean {
  const { leftMs, heldMs, pauseMs } = times
  if (pauseMs <= SHORT_PAUSE_MS) return false
  const isBackInTime = leftMs >= FASTER * pauseMs
  return leftMs <= pauseMs + AHEAD_MS && leftMs > (isBackInTime ? heldMs - AHEAD_MS : heldMs)
}

/** Tracks kubelet's pauses between the calls for each volume, which double with each refused call. */
export class KubeletPauses {
  /** Target of a volume → when its last call was refused, in ms. */
  readonly #refusedAtMs = new Map<string, number>()

  /** Notes a call for the volume at `target`. Returns how long kubelet pauses if this call is refused, in ms. */
  asked(target: string, nowMs: number): number {
    const beforeMs = this.#refusedAtMs.get(target)
    if (beforeMs === undefined) return FIRST_PAUSE_MS
    return Math.min(Math.max(2 * (nowMs - beforeMs), FIRST_PAUSE_MS), LONGEST_PAUSE_MS)
  }

  /** Whether a call for the volume was refused. */
  wasRefused(target: string): boolean {
    return this.#refusedAtMs.has(target)
  }

  /** Notes that the call was refused. */
  refused(target: string, nowMs: number): void {
    for (const [each, atMs] of this.#refusedAtMs) if (nowMs - atMs > FORGET_MS) this.#refusedAtMs.delete(each)
    this.#refusedAtMs.set(target, nowMs)
  }

  /** Forgets a volume that is mounted or gone. */
  forget(target: string): void {
    this.#refusedAtMs.delete(target)
  }
}
