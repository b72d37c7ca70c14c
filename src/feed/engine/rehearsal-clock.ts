import { setImmediate as nextTurn } from 'node:timers/promises'

interface Alarm {
  readonly atMs: number
  readonly ring: () => void
}

/** Simulated time: it advances only when no work is left at this moment, so sleeping takes no real time. */
export class RehearsalClock {
  readonly #alarms: Alarm[] = []
  readonly #isWorking: () => boolean
  readonly #onPass: (fromMs: number, toMs: number) => void
  #nowMs = 0

  /**
   * `isWorking` tells whether work is going on that takes real time; `onPass` receives each stretch of time that
   * passes.
   */
  constructor(isWorking: () => boolean, onPass: (fromMs: number, toMs: number) => void) {
    this.#isWorking = isWorking
    this.#onPass = onPass
  }

  /** Time since the simulation began, in ms. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** Resolves when `ms` have passed. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#alarms.push({ atMs: this.#nowMs + ms, ring: resolve }))
  }

  /** Advances time until `work` is done. Rejects when `work` does, or when it waits for something that never comes. */
  async runUntil(work: Promise<unknown>): Promise<void> {
    let isDone = false
    const done = work.finally(() => {
      isDone = true
    })
    done.catch(() => {}) // awaited below
    for (;;) {
      do await nextTurn()
      while (this.#isWorking())
      await nextTurn() // lets code react to a thread's latest answer
      if (isDone) break
      if (!this.#isWorking()) this.#pass()
    }
    await done
  }

  #pass(): void {
    if (this.#alarms.length === 0) throw new Error('the rehearsal waits for what never comes')
    const atMs = this.#alarms.reduce((least, alarm) => Math.min(least, alarm.atMs), Number.POSITIVE_INFINITY)
    if (atMs > this.#nowMs) this.#onPass(this.#nowMs, atMs)
    this.#nowMs = atMs
    const due = this.#alarms.filter((alarm) => alarm.atMs <= atMs)
    const later = this.#alarms.filter((alarm) => alarm.atMs > atMs)
    this.#alarms.splice(0, this.#alarms.length, ...later)
    for (const { ring } of due) ring()
  }
}
