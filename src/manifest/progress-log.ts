import type { VerifiedBy } from '../model/manifest.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { FinishedPart } from '../proof/prove-parts.js'
import type { Manifest } from './manifest.js'

const BATCH_ENTRIES = 512
const BATCH_MS = 200

/**
 * Records progress in the manifest, in batches: after kill -9 at most the last 200 ms are fetched again. Every entry is
 * about bytes that are already in the file.
 */
export class ProgressLog {
  readonly #manifest: Manifest
  #pending: (() => void)[] = []
  /** The newest block bits of objects that received blocks. */
  readonly #blocks = new Map<number, Uint8Array>()
  #timer: NodeJS.Timeout | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(manifest: Manifest) {
    this.#manifest = manifest
  }

  /** `digest` is null for an object in several parts. */
  finishObject(id: number, verifiedBy: VerifiedBy, digest: string | null): void {
    this.#blocks.delete(id)
    this.#add(() => this.#manifest.finishObject(id, verifiedBy, digest))
  }

  finishPart(objectId: number, number: number, part: FinishedPart): void {
    this.#add(() => this.#manifest.parts.finish(objectId, number, part))
  }

  planObject(id: number, partBytes: number, facts: ObjectFacts): void {
    this.#add(() => this.#manifest.planObject(id, partBytes, facts))
  }

  /** Call it when blocks of an object are in its file; `bits` may go on changing. */
  wroteBlocks(objectId: number, bits: Uint8Array): void {
    this.#blocks.set(objectId, bits)
    this.#flushSoon()
  }

  forgetParts(objectId: number): void {
    this.#blocks.delete(objectId)
    this.#add(() => this.#manifest.forgetParts(objectId))
  }

  /** Commits pending entries. Throws the error of an earlier commit by timer. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#failure) throw this.#failure.error
    const entries = this.#pending
    if (entries.length === 0 && this.#blocks.size === 0) return
    this.#pending = []
    this.#manifest.transaction(() => {
      for (const write of entries) write()
      for (const [objectId, bits] of this.#blocks) this.#manifest.blocks.write(objectId, bits)
    })
    this.#blocks.clear()
  }

  #add(write: () => void): void {
    this.#pending.push(write)
    if (this.#pending.length >= BATCH_ENTRIES) this.flush()
    else this.#flushSoon()
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => this.#flushByTimer(), BATCH_MS)
  }

  #flushByTimer(): void {
    try {
      this.flush()
    } catch (error) {
      this.#failure ??= { error } // thrown at the next call that adds or flushes
    }
  }
}
