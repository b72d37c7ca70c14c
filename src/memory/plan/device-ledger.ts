/** Tracks the storages on the simulated device and their bytes. Knows nothing of plans. */
export class DeviceLedger {
  readonly #held = new Map<number, { bytes: number; isInArena: boolean }>()
  #usedBytes: number
  #arenaBytes = 0

  constructor(fixedBytes: number) {
    this.#usedBytes = fixedBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  has(storage: number): boolean {
    return this.#held.has(storage)
  }

  /** Allocates a storage; inside the arena it costs nothing beyond the arena itself. */
  put({
    storage,
    bytes,
    isInArena,
  }: {
    readonly storage: number
    readonly bytes: number
    readonly isInArena: boolean
  }): void {
    if (this.#held.has(storage)) return
    this.#held.set(storage, { bytes, isInArena })
    if (!isInArena) this.#usedBytes += bytes
  }

  /** Frees a storage's memory; does nothing if it is not on the device. */
  drop(storage: number): void {
    const held = this.#held.get(storage)
    if (!held) return
    this.#held.delete(storage)
    if (!held.isInArena) this.#usedBytes -= held.bytes
  }

  takeArena(bytes: number): void {
    this.#arenaBytes = bytes
    this.#usedBytes += bytes
  }

  /** Frees the arena. Returns a complaint for everything still inside. */
  returnArena(): string[] {
    this.#usedBytes -= this.#arenaBytes
    this.#arenaBytes = 0
    return [...this.#held]
      .filter(([, { isInArena }]) => isInArena)
      .map(([storage]) => `storage ${storage} is still in the reload arena when it is given back`)
  }
}
