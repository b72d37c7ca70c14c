import { readFileSync } from 'node:fs'

/** Growth within the second half that is no growth: a heap that breathes. */
const MAX_GROWTH = 1.15
const MAX_GROWTH_MIB = 12
const MIN_SAMPLES = 8
/**
 * What a process takes while it is young does not count, ms. Under stagings of one kind, one after the other for four
 * minutes, an agent's heap after collections went 25.4, 26.7, 27.5, 27.9, 28.0, 28.0 MiB at intervals of 45 s. What two
 * snapshots of the heap, a hundred stagings apart, differ by is compiled functions. Resident memory follows, and with
 * it the garbage that V8 lets gather.
 */
const WARM_UP_MS = 180_000

/**
 * Resident memory of daemons, without pages of files, by name, from when each had warmed up; one that was started anew
 * begins anew.
 */
export class MemoryWatch {
  readonly #samples = new Map<
    string,
    { readonly pid: number; readonly sinceMs: number; readonly mebibytes: number[] }
  >()

  sample(daemons: ReadonlyMap<string, number | undefined>): void {
    for (const [name, pid] of daemons) {
      const mebibytes = pid === undefined ? undefined : readResident(pid)
      if (pid === undefined || mebibytes === undefined) continue
      const nowMs = performance.now()
      const known = this.#samples.get(name)
      if (known?.pid !== pid) this.#samples.set(name, { pid, sinceMs: nowMs, mebibytes: [] })
      else if (nowMs - known.sinceMs > WARM_UP_MS) known.mebibytes.push(mebibytes)
    }
  }

  /** Forgets what was before: the second half begins. */
  halve(): void {
    for (const { mebibytes } of this.#samples.values()) mebibytes.splice(0)
  }

  /** One line per daemon; a problem where its memory grew from the first third of the samples to the last. */
  judge(): readonly { readonly line: string; readonly isGrowing: boolean }[] {
    return [...this.#samples].map(([name, { mebibytes }]) => {
      const third = Math.floor(mebibytes.length / 3)
      if (mebibytes.length < MIN_SAMPLES) return { line: `${name}: started anew of late`, isGrowing: false }
      const [early, late] = [median(mebibytes.slice(0, third)), median(mebibytes.slice(-third))]
      return {
        line: `${name}: ${early.toFixed(0)} MiB early in the second half, ${late.toFixed(0)} MiB at the end`,
        isGrowing: late > early * MAX_GROWTH && late > early + MAX_GROWTH_MIB,
      }
    })
  }
}

function readResident(pid: number): number | undefined {
  try {
    return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  } catch {
    return undefined // it has just ended
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!
}
