import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Keeps V8 from growing the space for new objects, and from letting garbage grow to twice the live size, for a command
 * that makes many objects: more frequent collection costs it little. The status of 100,000 copies takes 200 MiB instead
 * of 400 if it keeps them all, and 140 instead of 180 as JSON (`npm run bench -- growth`).
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=30')
}

/** How long after the work to give back its memory: the first batches come before, in ms. */
const GIVE_BACK_MS = 2000

/**
 * The same for a command that first lists or stages: until `afterWork` is called, the space for new objects may grow. A
 * small one is collected so often, by threads on all cores, that a list of 21,000 tar headers takes half as much
 * processor time again. V8 would keep the space at its largest size.
 */
export function keepHeapSmallAfterWork(): { afterWork(delayMs?: number): void } {
  setFlagsFromString('--heap-growing-percent=30')
  return {
    afterWork(delayMs = GIVE_BACK_MS) {
      setFlagsFromString('--semi-space-growth-factor=1')
      setTimeout(giveBackMemory, delayMs).unref()
    },
  }
}

/** Collects all garbage and shrinks the space for new objects, which only this kind of collection does: some 30 ms. */
function giveBackMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (how: Readonly<Record<string, string>>) => void
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
