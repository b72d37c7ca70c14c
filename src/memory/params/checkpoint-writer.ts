import { type Checkpoint, writeCheckpoint } from './checkpoint.js'

/** Writes the checkpoints of a central node, one after the other. */
export class CheckpointWriter {
  readonly #folder: string | undefined
  /** Ends with the last one, whether it was written or not: one that fails must not fail those after it. */
  #last: Promise<void> = Promise.resolve()
  #unwritten = 0
  /** Version of the last one that was begun; −1: none. */
  version = -1

  /** Without a folder nothing is written. */
  constructor(folder: string | undefined) {
    this.#folder = folder
  }

  /** Whether some are not on disk yet: until then, nobody may see what is in them. */
  get isWriting(): boolean {
    return this.#unwritten > 0
  }

  /**
   * Writes what `make` gives, when those before are over. Rejects where that fails; `onFailed` is called before anybody
   * who waits can go on.
   */
  async write(make: () => Checkpoint | undefined, onFailed?: (error: unknown) => void): Promise<void> {
    const folder = this.#folder
    if (folder === undefined) return
    const written = this.#last
      .then(async () => {
        const checkpoint = make()
        if (!checkpoint) return
        this.version = checkpoint.version
        await writeCheckpoint(folder, checkpoint)
      })
      .catch((error: unknown) => {
        onFailed?.(error)
        throw error
      })
    this.#last = written.catch(() => {})
    this.#unwritten++
    await written.finally(() => {
      this.#unwritten--
    })
  }

  /** Resolves when those under way are over, written or not. */
  async settle(): Promise<void> {
    await this.#last
  }

  /** What workers are told of an error of `write`. */
  explain(error: unknown): string {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    return `no checkpoint can be written to ${this.#folder} (${reason})`
  }
}
