import { STATE_CODES } from './manifest-entry.js'
import type { ManifestStatements } from './manifest-statements.js'

const PAGE_OBJECTS = 500

/** An object of a manifest that an older copy has, too. */
export interface ReusableObject {
  readonly id: number
  readonly key: string
  readonly sizeBytes: number
  readonly previousId: number
  readonly previousKey: string
}

/**
 * The manifest of an older copy, attached to the one being filled: finds the objects that both share, and copies the
 * older one's knowledge of them.
 */
export class AttachedPrevious {
  readonly #statements: ManifestStatements

  /** `path` is the file of the older manifest. It stays attached until `detach`. */
  constructor(statements: ManifestStatements, path: string) {
    this.#statements = statements
    statements.run('ATTACH ? AS previous', path)
  }

  /** Missing objects that the older manifest has under the same key with the same size, etag and version. */
  unchangedPages(): Generator<readonly ReusableObject[], undefined> {
    return this.#pages(`JOIN previous.object AS old ON old.key = mine.key AND old.size_bytes = mine.size_bytes
       AND old.etag = mine.etag AND old.version_id IS mine.version_id`)
  }

  /** Missing objects that the older manifest has under any key, matched by the checksum that the source lists. */
  equalPages(): Generator<readonly ReusableObject[], undefined> {
    const hasChecksums = 'SELECT 1 FROM previous.object WHERE checksum_value IS NOT NULL LIMIT 1'
    if (this.#statements.get(hasChecksums) === undefined) return noPages()
    this.#statements.run(`CREATE TEMP TABLE IF NOT EXISTS content (algorithm TEXT, value TEXT, id INTEGER,
       PRIMARY KEY (algorithm, value)) WITHOUT ROWID`)
    this.#statements.run('DELETE FROM content')
    this.#statements.run(`INSERT OR IGNORE INTO content SELECT checksum_algorithm, checksum_value, id
       FROM previous.object WHERE checksum_value IS NOT NULL AND state = ${STATE_CODES.present}`)
    return this.#pages(`JOIN content ON content.algorithm = mine.checksum_algorithm
       AND content.value = mine.checksum_value
       JOIN previous.object AS old ON old.id = content.id AND old.size_bytes = mine.size_bytes`)
  }

  #pages(join: string): Generator<readonly ReusableObject[], undefined> {
    const sql = `SELECT mine.id, mine.key, mine.size_bytes AS sizeBytes, old.id AS previousId, old.key AS previousKey
       FROM object AS mine ${join}
       WHERE old.state = ${STATE_CODES.present} AND mine.id > ? AND mine.state = ${STATE_CODES.missing}
         AND mine.part_bytes IS NULL
       ORDER BY mine.id LIMIT ${PAGE_OBJECTS}`
    return this.#statements.pages<ReusableObject>(sql, 0, ({ id }) => id)
  }

  /** Copies what the older manifest knows of an object. */
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

  /** Detaches the older manifest. */
  detach(): void {
    this.#statements.clear()
    this.#statements.run('DETACH previous')
    this.#statements.clear()
  }
}

function* noPages(): Generator<readonly ReusableObject[], undefined> {}
