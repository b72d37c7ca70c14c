import type Database from 'better-sqlite3'
import type { VerifiedBy } from '../model/manifest.js'
import type { FinishedPart } from './transfer/prove-parts.js'

const BATCH_ENTRIES = 512
const BATCH_MS = 200

/**
 * Writes what is finished into the manifest, in batches: after kill -9 at most the last 200 ms are fetched again.
 * Every entry is about bytes that are in the file already.
 */
export class ProgressLog {
  readonly #db: Database.Database
  readonly #finishObject
  readonly #finishPart
  readonly #planObject
  readonly #forgetParts
  #pending: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(db: Database.Database) {
    this.#db = db
    this.#finishObject = db.prepare('UPDATE object SET state = 1, verified_by = ?, digest = ? WHERE id = ?')
    this.#finishPart = db.prepare('INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?)')
    this.#planObject = db.prepare('UPDATE object SET part_bytes = ?, facts = ? WHERE id = ?')
    this.#forgetParts = db.prepare('DELETE FROM part WHERE object_id = ?')
  }

  /** `digest` is null for an object in several parts. */
  finishObject(id: number, verifiedBy: VerifiedBy, digest: string | null): void {
    this.#add(() => this.#finishObject.run(verifiedBy, digest, id))
  }

  finishPart(objectId: number, number: number, part: FinishedPart): void {
    this.#add(() => this.#finishPart.run(objectId, number, part.digest, part.proof))
  }

  planObject(id: number, partBytes: number, facts: string): void {
    this.#add(() => this.#planObject.run(partBytes, facts, id))
  }

  forgetParts(objectId: number): void {
    this.#add(() => this.#forgetParts.run(objectId))
  }

  /** Commits what is pending. Throws what an earlier commit by timer failed with. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#failure) throw this.#failure.error
    const entries = this.#pending
    if (entries.length === 0) return
    this.#pending = []
    this.#db.transaction(() => {
      for (const write of entries) write()
    })()
  }

  #add(write: () => void): void {
    this.#pending.push(write)
    if (this.#pending.length >= BATCH_ENTRIES) this.flush()
    else this.#timer ??= setTimeout(() => this.#flushByTimer(), BATCH_MS)
  }

  #flushByTimer(): void {
    try {
      this.flush()
    } catch (error) {
      this.#failure ??= { error } // told to whoever adds or flushes next
    }
  }
}
