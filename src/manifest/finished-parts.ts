import type { Part } from '../proof/plan-parts.js'
import type { FinishedPart } from '../proof/prove-parts.js'
import type { ManifestEntry } from './manifest-entry.js'
import type { ManifestStatements } from './manifest-statements.js'

/** The finished parts of objects, with their digests. */
export class FinishedParts {
  readonly #statements: ManifestStatements

  constructor(statements: ManifestStatements) {
    this.#statements = statements
  }

  /** The finished parts of an object in several parts, by number. */
  of(objectId: number): ReadonlyMap<number, FinishedPart> {
    const rows = this.#statements.all<FinishedPart & { number: number }>(
      'SELECT * FROM part WHERE object_id = ?',
      objectId,
    )
    return new Map(rows.map(({ number, digest, proof }) => [number, { digest, proof }]))
  }

  /** The known digests of an object's parts, by number. */
  digestsOf(entry: Pick<ManifestEntry, 'id' | 'partBytes' | 'digest'>): ReadonlyMap<number, string> {
    if (entry.partBytes === null) return new Map(entry.digest === null ? [] : [[0, entry.digest]])
    return new Map([...this.of(entry.id)].map(([number, { digest }]) => [number, digest]))
  }

  /** The finished part (the object, if it is one part) that contains a range, with its digest. */
  find(
    entry: Pick<ManifestEntry, 'id' | 'sizeBytes' | 'partBytes' | 'digest'>,
    range: { readonly offset: number; readonly length: number },
  ): (Part & { readonly digest: string }) | undefined {
    const partBytes = entry.partBytes ?? Math.max(1, entry.sizeBytes)
    const number = Math.floor(range.offset / partBytes)
    const offset = number * partBytes
    const length = Math.min(partBytes, entry.sizeBytes - offset)
    if (range.offset + range.length > offset + length) return undefined
    const sql = 'SELECT digest FROM part WHERE object_id = ? AND number = ?'
    const digest =
      entry.partBytes === null
        ? entry.digest
        : this.#statements.get<{ digest: string }>(sql, entry.id, number)?.digest
    return digest ? { number, offset, length, digest } : undefined
  }

  /** Whether the parts from `first` to `last` are all finished. */
  has(objectId: number, first: number, last: number): boolean {
    const sql = 'SELECT count(*) AS n FROM part WHERE object_id = ? AND number BETWEEN ? AND ?'
    return this.#statements.get<{ n: number }>(sql, objectId, first, last)!.n === last - first + 1
  }

  finish(objectId: number, number: number, { digest, proof }: FinishedPart): void {
    this.#statements.run('INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?)', objectId, number, digest, proof)
  }

  /** Marks these parts as still to be fetched. */
  forget(objectId: number, numbers: readonly number[]): void {
    for (const number of numbers)
      this.#statements.run('DELETE FROM part WHERE object_id = ? AND number = ?', objectId, number)
  }

  forgetAll(objectId: number): void {
    this.#statements.run('DELETE FROM part WHERE object_id = ?', objectId)
  }
}
