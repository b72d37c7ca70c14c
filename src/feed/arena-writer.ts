import { writeFully } from './write-fully.js'

/** Writes bytes into the arena; small pieces that lie side by side go in one call. */
export interface ArenaWriter {
  /** Takes `bytes` for the place `at`; they are in the arena after the next `flush` at the latest. */
  write(bytes: Uint8Array, at: number): void
  flush(): void
}

const GATHER_BYTES = 512 * 1024

/** Longer pieces are written at once: copying them first costs more than the call. */
const SMALL_BYTES = 32 * 1024

/** Bytes that may lie between neighbours: what aligning an extent leaves over. Nobody reads them. */
const LARGEST_GAP_BYTES = 63

export function createArenaWriter(arenaFd: number): ArenaWriter {
  const gather = Buffer.allocUnsafeSlow(GATHER_BYTES)
  let start = 0
  let filled = 0
  const flush = () => {
    if (filled > 0) writeFully(arenaFd, gather.subarray(0, filled), start)
    filled = 0
  }
  return {
    write(bytes, at) {
      const gap = filled > 0 ? at - (start + filled) : 0
      const isNear = gap >= 0 && gap <= LARGEST_GAP_BYTES && filled + gap + bytes.length <= GATHER_BYTES
      if (!isNear || bytes.length > SMALL_BYTES) flush()
      if (bytes.length > SMALL_BYTES) return writeFully(arenaFd, bytes, at)
      if (filled === 0) start = at
      else filled += gap
      gather.set(bytes, filled)
      filled += bytes.length
    },
    flush,
  }
}
