import { STATE_CODES } from './manifest-entry.js'
import type { ManifestStatements } from './manifest-statements.js'

const PAGE_OBJECTS = 500

/** An object of a manifest that is in an older copy, too. */
export interface ReusableObject {
  readonly id: number
  readonly key: string
  readonly sizeBytes: number
  readonly previousId: number
}

/** The manifest of an older copy, beside the one that is being filled: says which objects are the same, and takes over what is known of them. */
export class AttachedPrevious {
  readonly #statements: ManifestStatements

  /** `path` is the file of the older manifest. It stays attached until `detach`. */
  constructor(statements: ManifestStatements, path: string) {
    this.#statements = statements
    statements.run('ATTACH ? AS previous', path)
  }

  /** Missing objects that the older manifest has with the same size, etag and version. */
  reusablePages(): Generator<readonly ReusableObject[], undefined> {
    const sql = `SELECT mine.id, mine.key, mine.size_bytes AS sizeBytes, old.id AS previousId FROM object AS mine
       JOIN previous.object AS old ON old.key = mine.key AND old.size_bytes = mine.size_bytes
         AND old.etag = mine.etag AND old.version_id IS mine.version_id AND old.state = ${STATE_CODES.present}
       WHERE mine.id > ? AND mine.state = ${STATE_CODES.missing} AND mine.part_bytes IS NULL
       ORDER BY mine.id LIMIT ${PAGE_OBJECTS}`
    return this.#statements.pages<ReusableObject>(sql, 0, ({ id }) => id)
  }

  /** Says of an object what the older manifest says of it. */
  reuse({ id, previousId }: ReusableObject): void {
    this.#statements.run(
      `UPDATE object SET (state, part_bytes, facts, verified_by, digest) =
         (SELECT ${STATE_CODES.present}, part_bytes, facts, verified_by, digest FROM previous.object WHERE id = ?)
       WHERE id = ?`,
      previousId,
      id,
    )
    this.#statements.run(
      'INSERT INTO part SELECT ?, number, digest, proof FROM previous.part WHERE object_id = ?',
      id,
      previousId,
    )
  }

  /** Lets the older manifest go. */
  detach(): void {
    this.#statements.clear()
    this.#statements.run('DETACH previous')
    this.#statements.clear()
  }
}
