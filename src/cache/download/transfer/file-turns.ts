import { crc32 } from 'node:zlib'

/** Turns at writing to files, in memory that the threads of a download share. */
export type FileTurns = SharedArrayBuffer

const FREE = 0
const TAKEN = 1
const AWAITED = 2
/** More than the files that threads write to at a time; two that share a slot only wait for each other. */
const SLOTS = 64
/** Longest wait for a turn, in ms: the thread that has it may have ended in it. */
const PATIENCE_MS = 5000

/** Begins the turns of one download. */
export function createFileTurns(): FileTurns {
  return new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT)
}

/**
 * Calls `write` when no other thread of the download writes to the file `name`, or after `PATIENCE_MS`. The kernel
 * allows one writer per file and lets others spin, which took an eighth of the processor time of 1 GiB objects; here
 * they sleep. Turns save that time and protect nothing: each thread writes a range of its own.
 */
export function inTurn<Value>(turns: FileTurns | undefined, name: string, write: () => Value): Value {
  if (turns === undefined) return write()
  const states = new Int32Array(turns)
  const slot = crc32(name) % SLOTS
  takeTurn(states, slot)
  try {
    return write()
  } finally {
    if (Atomics.exchange(states, slot, FREE) === AWAITED) Atomics.notify(states, slot, 1)
  }
}

/** Returns without a turn when patience ends. The caller's release then frees the turn of a thread that has ended. */
function takeTurn(states: Int32Array, slot: number): void {
  if (Atomics.compareExchange(states, slot, FREE, TAKEN) === FREE) return
  while (Atomics.exchange(states, slot, AWAITED) !== FREE)
    if (Atomics.wait(states, slot, AWAITED, PATIENCE_MS) === 'timed-out') return
}
