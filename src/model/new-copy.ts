import type { Copy } from './copy.js'

type Known = Pick<
  Copy,
  'copyId' | 'dataset' | 'node' | 'origin' | 'source' | 'directory' | 'lastTask' | 'stripe'
>

/** A new copy: reserved at `nowMs` (Unix epoch, ms), with nothing listed, charged or written. */
export function newCopy(known: Known, nowMs: number): Copy {
  return {
    version: null,
    state: 'reserved',
    path: known.directory,
    chargedBytes: 0,
    chargedInodes: 0,
    writtenBytes: 0,
    files: 0,
    contentBytes: 0,
    lock: null,
    lastUsedAtMs: nowMs,
    createdAtMs: nowMs,
    readyAtMs: null,
    ...known,
  }
}
