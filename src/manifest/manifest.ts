import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import type { Stripe } from '../model/copy.js'
import type { ManifestObject, VerifiedBy } from '../model/manifest.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import { ArrivedBlocks } from './arrived-blocks.js'
import { AttachedPrevious } from './attached-previous.js'
import { FinishedParts } from './finished-parts.js'
import { FolderMarkers } from './folder-markers.js'
import {
  type IdentityRow,
  type ManifestEntry,
  type ObjectRow,
  type Selection,
  STATE_CODES,
  toEntry,
  toUncheckedEntry,
  WHERE,
} from './manifest-entry.js'
import {
  createManifestFile,
  foldJournal,
  isUnusable,
  openManifestFile,
  openPublishedFile,
} from './manifest-file.js'
import { manifestPath } from './manifest-path.js'
import { ManifestStatements } from './manifest-statements.js'

/** Settings of a manifest, besides its objects. */
type ManifestSetting =
  /** The parts of the listed definition that affect the listing. */
  | 'dataset'
  /** The whole definition, so that a lost record can be rebuilt. */
  | 'definition'
  /** The Listing; present only when the listing is complete. */
  | 'listing'
  | 'stripe'
  /** The listing describes objects that no longer exist. */
  | 'stale'
  /** The boot in which the files were written. */
  | 'boot_id'
  /** A flush failed: the kernel reports a failed write once, to the flush that saw it, and never again. */
  | 'must_sync_each'
  /** Readers asked for ranges in the middle of parts: a part may have holes. */
  | 'out_of_order'
  /** Files were begun in an earlier boot: what is in them may never have been written. */
  | 'rebooted'

const PAGE_ENTRIES = 500

/** `any`: no files are made of the objects, so that every key of the source is accepted. Default: `paths`. */
interface KeyRule {
  readonly keys?: 'paths' | 'any'
}

/** The manifest of one copy: its objects, their parts and its settings. No other code knows its tables. */
export class Manifest {
  readonly #db: Database.Database
  readonly #statements: ManifestStatements
  readonly #toEntry: typeof toEntry
  readonly markers: FolderMarkers
  readonly blocks: ArrivedBlocks
  readonly parts: FinishedParts

  private constructor(db: Database.Database, { keys }: KeyRule = {}) {
    this.#db = db
    this.#toEntry = keys === 'any' ? toUncheckedEntry : toEntry
    this.#statements = new ManifestStatements(db)
    this.markers = new FolderMarkers(this.#statements)
    this.blocks = new ArrivedBlocks(this.#statements)
    this.parts = new FinishedParts(this.#statements)
  }

  /** Creates an empty manifest and discards the old one. */
  static create(copyDirectory: string, rule?: KeyRule): Manifest {
    return new Manifest(createManifestFile(copyDirectory), rule)
  }

  /** Opens a manifest that is being filled. */
  static open(copyDirectory: string): Manifest {
    return new Manifest(openManifestFile(copyDirectory))
  }

  /** Opens the manifest of a published copy. */
  static openPublished(copyDirectory: string, rule?: KeyRule): Manifest {
    return new Manifest(openPublishedFile(copyDirectory), rule)
  }

  /** Like `openPublished`; undefined if no manifest of this format opens. */
  static findPublished(copyDirectory: string, rule?: KeyRule): Manifest | undefined {
    if (!existsSync(manifestPath(copyDirectory))) return undefined
    try {
      return Manifest.openPublished(copyDirectory, rule)
    } catch (error) {
      if (isUnusable(error)) return undefined
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.close()
  }

  close(): void {
    this.#db.close()
  }

  /** Keeps the file locked for reading until this turn of the event loop ends: a lock costs more than a look-up. */
  holdForTurn(): void {
    if (this.#db.inTransaction) return
    this.#statements.run('BEGIN')
    setImmediate(() => {
      if (this.#db.open) this.#statements.run('COMMIT')
    })
  }

  /** Closes the manifest for good as one file, without a journal; waits for current readers. */
  async finish(): Promise<void> {
    this.close()
    await foldJournal(dirname(this.#db.name))
  }

  /** Commits all writes of `work`, or none. */
  transaction(work: () => void): void {
    this.#db.transaction(work)()
  }

  readSetting(name: ManifestSetting): string | undefined {
    return this.#statements.get<{ value: string }>('SELECT value FROM setting WHERE name = ?', name)?.value
  }

  writeSetting(name: ManifestSetting, value: string): void {
    this.#statements.run(
      'INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
      name,
      value,
    )
  }

  find(key: string): ManifestEntry | undefined {
    const row = this.#statements.get<ObjectRow>('SELECT * FROM object WHERE key = ?', key)
    return row && this.#toEntry(row)
  }

  has(key: string, selection: Selection = 'all'): boolean {
    const sql = `SELECT 1 FROM object WHERE key = ? AND ${WHERE[selection]}`
    return this.#statements.get(sql, key) !== undefined
  }

  get(id: number): ManifestEntry {
    return this.#toEntry(this.#statements.get<ObjectRow>('SELECT * FROM object WHERE id = ?', id)!)
  }

  /** Entries in the order of the listing, a page at a time: entries may be changed between two pages. */
  *pages(selection: Selection, pageEntries = PAGE_ENTRIES): Generator<readonly ManifestEntry[], undefined> {
    const sql = `SELECT * FROM object WHERE id > ? AND ${WHERE[selection]} ORDER BY id LIMIT ${pageEntries}`
    for (const rows of this.#statements.pages<ObjectRow>(sql, 0, ({ id }) => id))
      yield rows.map(this.#toEntry)
  }

  /** Entries to be fetched, in the byte order of keys, a page at a time. */
  *missingPages(pageEntries: number): Generator<readonly ManifestEntry[], undefined> {
    const sql = `SELECT * FROM object WHERE key > ? AND ${WHERE.missing} ORDER BY key LIMIT ${pageEntries}`
    for (const rows of this.#statements.pages<ObjectRow>(sql, '', ({ key }) => key))
      yield rows.map(this.#toEntry)
  }

  /** Like `pages`, one by one. */
  *entries(selection: Selection): Generator<ManifestEntry, undefined> {
    for (const page of this.pages(selection)) yield* page
  }

  /** All entries in the byte order of keys. Do not write to the manifest during the iteration. */
  *entriesByKey(): Generator<ManifestEntry> {
    for (const row of this.#db.prepare<[], ObjectRow>('SELECT * FROM object ORDER BY key').iterate())
      yield this.#toEntry(row)
  }

  /** Entries with keys from `key` on, in the byte order of keys, a page at a time. */
  *entriesFrom(key: string): Generator<ManifestEntry, undefined> {
    const first = this.find(key)
    if (first) yield first
    const sql = `SELECT * FROM object WHERE key > ? ORDER BY key LIMIT ${PAGE_ENTRIES}`
    for (const rows of this.#statements.pages<ObjectRow>(sql, key, (row) => row.key))
      yield* rows.map(this.#toEntry)
  }

  /** Identifying columns of the objects from `first` to `last`, in the byte order of keys; at most `most`. */
  identitiesBetween(first: string, last: string, most: number): readonly IdentityRow[] {
    const sql = `SELECT id, key, size_bytes, etag, version_id, checksum_algorithm, checksum_value FROM object
      WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?`
    return this.#statements.all<IdentityRow>(sql, first, last, most)
  }

  /** Ids of objects that are present. */
  presentIds(): readonly number[] {
    const sql = `SELECT id FROM object WHERE ${WHERE.present}`
    return this.#statements.all<{ id: number }>(sql).map(({ id }) => id)
  }

  maxId(): number {
    return this.#statements.get<{ id: number }>('SELECT coalesce(max(id), 0) AS id FROM object')!.id
  }

  findId(key: string): number | undefined {
    return this.#statements.get<{ id: number }>('SELECT id FROM object WHERE key = ?', key)?.id
  }

  count(selection: Selection): { readonly files: number; readonly contentBytes: number } {
    return this.#statements.get<{ files: number; contentBytes: number }>(
      `SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS contentBytes FROM object WHERE ${WHERE[selection]}`,
    )!
  }

  /** Number of present objects by how they were verified. */
  countByProof(): Partial<Record<VerifiedBy, number>> {
    const counts = this.#statements.all<{ verified_by: VerifiedBy; files: number }>(
      `SELECT verified_by, count(*) AS files FROM object WHERE ${WHERE.present} GROUP BY verified_by`,
    )
    return Object.fromEntries(counts.map((row) => [row.verified_by, row.files]))
  }

  /** Two keys that differ only in case; undefined if there are no such keys. */
  findEqualNames(): { readonly first: string; readonly last: string } | undefined {
    this.#db.function('fold', { deterministic: true }, (key) => String(key).normalize('NFC').toLowerCase())
    return this.#statements.get<{ first: string; last: string }>(
      'SELECT min(key) AS first, max(key) AS last FROM object GROUP BY fold(key) HAVING count(*) > 1 LIMIT 1',
    )
  }

  /** Adds listed objects, all to be fetched. */
  add(objects: readonly Omit<ManifestObject, 'path'>[]): void {
    this.transaction(() => {
      for (const { key, sizeBytes, etag, versionId, checksum, modifiedAtMs } of objects)
        this.#statements.run(
          `INSERT INTO object (key, size_bytes, etag, version_id, checksum_algorithm, checksum_value, modified_at_ms)
           VALUES (?, ?, ?, ?, ?, ?, ?)`,
          ...[key, sizeBytes, etag, versionId],
          ...[checksum?.algorithm ?? null, checksum?.value ?? null, modifiedAtMs],
        )
    })
  }

  /** Forgets all objects. */
  clear(): void {
    this.markers.clear()
    this.blocks.drop()
    this.#db.exec('DELETE FROM object')
  }

  /** Marks the objects of other stripes: object i, in the byte order of keys, is of stripe i mod N. */
  keepStripe(stripe: Stripe): void {
    this.#statements.run(
      `UPDATE object SET state = ${STATE_CODES.elsewhere} WHERE id IN (
        SELECT id FROM (SELECT id, row_number() OVER (ORDER BY key) - 1 AS place FROM object)
        WHERE place % ? <> ?)`,
      stripe.nodes.length,
      stripe.index,
    )
  }

  /** Marks an object as written and verified; `digest` is null for one in several parts. */
  finishObject(id: number, verifiedBy: VerifiedBy, digest: string | null): void {
    const sql = `UPDATE object SET state = ${STATE_CODES.present}, verified_by = ?, digest = ? WHERE id = ?`
    this.#statements.run(sql, verifiedBy, digest, id)
    this.blocks.forget(id)
  }

  planObject(id: number, partBytes: number, facts: ObjectFacts): void {
    this.#statements.run(
      'UPDATE object SET part_bytes = ?, facts = ? WHERE id = ?',
      partBytes,
      JSON.stringify(facts),
      id,
    )
  }

  /** Marks an object as still to be fetched; for one in several parts only `parts`, absent = all. */
  forgetObject(id: number, parts?: readonly number[]): void {
    this.transaction(() => {
      const sql = `UPDATE object SET state = ${STATE_CODES.missing}, digest = NULL, verified_by = NULL WHERE id = ?`
      this.#statements.run(sql, id)
      if (parts === undefined) this.forgetParts(id)
      else this.parts.forget(id, parts)
    })
  }

  /** Marks all of an object that was planned in parts as still to be fetched. */
  forgetParts(id: number): void {
    this.parts.forgetAll(id)
    this.blocks.forget(id)
  }

  /** Reads the manifest of an older copy along with this one, until it is detached. */
  attachPrevious(copyDirectory: string): AttachedPrevious {
    return new AttachedPrevious(this.#statements, manifestPath(copyDirectory))
  }
}
