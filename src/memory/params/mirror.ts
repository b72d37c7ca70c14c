import { freemem } from 'node:os'
import { DscError } from '../../failure/dsc-error.js'

/** Bytes before the first half: version word, then the parameter version of each half. */
const HEADER_BYTES = 64
const WORD = 0
const VERSION_OF_HALF = [2, 3] as const

/**
 * A worker's copy of the parameters in host memory: two halves and a version word. A pull writes the half that is not
 * being read and then flips; the word is odd while it writes. Readers take no lock and cannot see a torn half: a read
 * counts only if no writer can have entered its half during the read. Works across threads that share `buffer`.
 */
export class Mirror {
  readonly buffer: SharedArrayBuffer
  readonly length: number
  readonly #words: Int32Array
  readonly #halves: readonly [Float32Array, Float32Array]

  /** `length`: float32 elements of one half. `buffer`: the region of another thread's mirror, to share it. */
  constructor(length: number, buffer?: SharedArrayBuffer) {
    const halfBytes = 4 * length
    this.length = length
    this.buffer = buffer ?? new SharedArrayBuffer(HEADER_BYTES + 2 * halfBytes)
    this.#words = new Int32Array(this.buffer, 0, HEADER_BYTES / 4)
    this.#halves = [
      new Float32Array(this.buffer, HEADER_BYTES, length),
      new Float32Array(this.buffer, HEADER_BYTES + halfBytes, length),
    ]
  }

  /** Version of the parameters that readers get now; 0 before the first pull. */
  get version(): number {
    return Atomics.load(this.#words, VERSION_OF_HALF[(Atomics.load(this.#words, WORD) >> 1) & 1]!)
  }

  /**
   * Lets `fill` write the inactive half, then activates it as `version`. That half holds the version before last, so
   * `fill` must write everything that changed since. One writer at a time. If `fill` rejects, readers keep the half
   * they have.
   */
  async update(
    version: number,
    fill: (inactive: Float32Array, active: Float32Array) => Promise<void> | void,
  ): Promise<void> {
    const word = Atomics.load(this.#words, WORD)
    if (word & 1) throw new Error('two writers in one mirror')
    const active = (word >> 1) & 1
    Atomics.add(this.#words, WORD, 1) // a read-modify-write: no later write of the half may pass it
    try {
      await fill(this.#halves[1 - active]!, this.#halves[active]!)
    } catch (error) {
      Atomics.store(this.#words, WORD, word)
      throw error
    }
    Atomics.store(this.#words, VERSION_OF_HALF[1 - active]!, version)
    Atomics.store(this.#words, WORD, word + 2)
  }

  /**
   * Copies `length` elements from `offset` into `target`, all of one version, and returns that version. Repeats while a
   * writer overtakes it, which takes two whole pulls during one read.
   */
  read(offset: number, length: number, target: Float32Array): number {
    for (;;) {
      const before = Atomics.load(this.#words, WORD)
      const flips = before >> 1
      const half = flips & 1
      const version = Atomics.load(this.#words, VERSION_OF_HALF[half]!)
      target.set(this.#halves[half]!.subarray(offset, offset + length))
      // The other half is written at word 2·flips+1; this one again only from 2·flips+3 on. Adding 0 is a read that no
      // earlier read of the half may pass, which a plain load is not on ARM.
      if (Atomics.add(this.#words, WORD, 0) < 2 * flips + 3) return version
    }
  }
}

/** Opens a mirror for `length` parameters, or refuses before step 1 if the host has no room for both halves. */
export function openMirror(length: number, freeBytes: number = freemem()): Mirror {
  const neededBytes = HEADER_BYTES + 8 * length
  if (neededBytes > freeBytes) {
    throw new DscError(
      'HOST_MEMORY_SHORT',
      `the parameter mirror needs ${neededBytes} bytes of host memory, ${freeBytes} are free`,
      { hint: 'run fewer workers per host, or a smaller model' },
    )
  }
  return new Mirror(length)
}
