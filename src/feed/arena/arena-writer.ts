import { MAX_GAP_BYTES } from './arena-runs.js'
import { writeFully } from './write-fully.js'

const GATHER_BYTES = 512 * 1024

/** Longer pieces are written at once: copying them first costs more than the call. */
const SMALL_BYTES = 32 * 1024

/** Writes bytes into the arena, gathering small neighboring pieces into one call. */
export class ArenaWriter {
  readonly #arenaFd: number
  readonly #gather = Buffer.allocUnsafeSlow(GATHER_BYTES)
  #start = 0
  #filled = 0

  constructor(arenaFd: number) {
    this.#arenaFd = arenaFd
  }

  /** Accepts `bytes` for offset `at`; they are in the arena after the next `flush` at the latest. */
  write(bytes: Uint8Array, at: number): void {
    const gap = this.#filled > 0 ? at - (this.#start + this.#filled) : 0
    const isNear = gap >= 0 && gap <= MAX_GAP_BYTES && this.#filled + gap + bytes.length <= GATHER_BYTES
    if (!isNear || bytes.length > SMALL_BYTES) this.flush()
    if (bytes.length > SMALL_BYTES) {
      writeFully(this.#arenaFd, bytes, at)
      return
    }
    if (this.#filled === 0) this.#start = at
    else this.#filled += gap
    this.#gather.set(bytes, this.#filled)
    this.#filled += bytes.length
  }

  /** Writes the gathered pieces. */
  flush(): void {
    if (this.#filled > 0) writeFully(this.#arenaFd, this.#gather.subarray(0, this.#filled), this.#start)
    this.#filled = 0
  }
}
