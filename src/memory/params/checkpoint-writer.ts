import { type Checkpoint, writeCheckpoint } from './checkpoint.js'

/** Writes the checkpoints of a central node, one after the other. */
export class CheckpointWriter {
  readonly #folder: string | undefined
  /** Settles with the last checkpoint, written or not: a failure must not affect the next ones. */
  #last: Promise<void> = Promise.resolve()
  #unwritten = 0
  /** Version of the last checkpoint begun; −1: none. */
  version = -1

  /** Without a folder it writes nothing. */
  constructor(folder: string | undefined) {
    this.#folder = folder
  }

  /** Whether checkpoints are not on disk yet: until then, no worker may see their content. */
  get isWriting(): boolean {
    return this.#unwritten > 0
  }

  /**
   * Writes the result of `make` once earlier writes are over. Rejects on failure, and calls `onFailed` before any
   * waiting caller can go on.
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

  /** Resolves when the writes under way are over, successful or not. */
  async settle(): Promise<void> {
    await this.#last
  }

  /** Describes an error of `write` for workers. */
  explain(error: unknown): string {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    return `no checkpoint can be written to ${this.#folder} (${reason})`
  }
}
