import type { ManifestObject } from '../model/manifest.js'
import type { ManifestEntry, ObjectRow } from './manifest-entry.js'
import type { ManifestStatements } from './manifest-statements.js'

const PAGE_MARKERS = 500

/** A row of `folder_marker`. */
type MarkerRow = Pick<ObjectRow, 'key' | 'etag' | 'version_id' | 'modified_at_ms'>

/**
 * Empty objects whose keys end in `/`, or are empty, which consoles use to show folders: S3 clients of the gateway see
 * them, but no copy has a file for them. Their table is created with the first marker, so that manifests without
 * markers, and those of older versions of dsc, stay unchanged.
 */
export class FolderMarkers {
  readonly #statements: ManifestStatements
  #hasTable: boolean | undefined

  constructor(statements: ManifestStatements) {
    this.#statements = statements
  }

  add(markers: readonly Pick<ManifestObject, 'key' | 'etag' | 'versionId' | 'modifiedAtMs'>[]): void {
    if (markers.length === 0) return
    this.#statements.run(`CREATE TABLE IF NOT EXISTS folder_marker (key TEXT PRIMARY KEY, etag TEXT, version_id TEXT,
       modified_at_ms INTEGER NOT NULL) WITHOUT ROWID`)
    this.#hasTable = true
    for (const { key, etag, versionId, modifiedAtMs } of markers)
      this.#statements.run(
        'INSERT OR REPLACE INTO folder_marker VALUES (?, ?, ?, ?)',
        ...[key, etag, versionId, modifiedAtMs],
      )
  }

  find(key: string): ManifestEntry | undefined {
    if (!this.#isThere()) return undefined
    const row = this.#statements.get<MarkerRow>('SELECT * FROM folder_marker WHERE key = ?', key)
    return row && toEntry(row)
  }

  /** Markers with keys from `key` on, in the byte order of keys. Do not write to the manifest during the iteration. */
  *from(key: string): Generator<ManifestEntry, undefined> {
    if (!this.#isThere()) return
    const first = this.find(key)
    if (first) yield first
    const sql = `SELECT * FROM folder_marker WHERE key > ? ORDER BY key LIMIT ${PAGE_MARKERS}`
    for (const rows of this.#statements.pages<MarkerRow>(sql, key, (row) => row.key)) yield* rows.map(toEntry)
  }

  clear(): void {
    if (this.#isThere()) this.#statements.run('DELETE FROM folder_marker')
  }

  #isThere(): boolean {
    const sql = `SELECT 1 FROM sqlite_master WHERE name = 'folder_marker'`
    this.#hasTable ??= this.#statements.get(sql) !== undefined
    return this.#hasTable
  }
}

function toEntry({ key, etag, version_id, modified_at_ms }: MarkerRow): ManifestEntry {
  return {
    ...{ id: 0, key, path: key, sizeBytes: 0, etag, versionId: version_id, modifiedAtMs: modified_at_ms },
    ...{ checksum: null, state: 'present', partBytes: null, facts: null, verifiedBy: null, digest: null },
  }
}
