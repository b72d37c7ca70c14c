import type Database from 'better-sqlite3'
import type { Copy } from '../model/copy.js'
import type { RecordStore } from '../records/record-store.js'
import { filesDirectory } from '../stage/cache-layout.js'
import { openPublishedManifest } from '../stage/manifest-db.js'
import type { ObjectRow } from '../stage/object-row.js'
import type { WireObject } from '../stage/peer-wire.js'

/** How long what the record said of this node's copies is believed, ms: far below the life of any lease. */
const BELIEVED_MS = 500
const MOST_OPEN_MANIFESTS = 64

/** An object that this node has whole. */
export interface LocalObject {
  readonly copy: Copy
  readonly row: ObjectRow
  /** Absolute path, made of the copy's directory and the manifest's key. */
  readonly path: string
}

/** What this node can serve. */
export interface LocalCopies {
  /** Ready copies and stagings of a dataset, newest first. */
  list(dataset: string): Promise<readonly Copy[]>
  findReady(object: WireObject): Promise<LocalObject | undefined>
  /** An object of the newest ready whole copy by its key. */
  findKey(dataset: string, key: string): Promise<LocalObject | undefined>
  /** The objects of the newest ready whole copy; undefined when there is none. */
  listFiles(dataset: string): Promise<Iterable<Pick<ObjectRow, 'key' | 'size_bytes'>> | undefined>
  close(): void
}

/** Looks up objects in the manifests of this node's copies, which it keeps open. */
export function openLocalCopies(record: RecordStore, node: string): LocalCopies {
  const believed = new Map<string, { readonly untilMs: number; readonly copies: Promise<readonly Copy[]> }>()
  const manifests = new Map<string, OpenManifest>()
  const list = (dataset: string) => {
    const known = believed.get(dataset)
    if (known && known.untilMs > performance.now()) return known.copies
    const copies = record
      .listCopies({ dataset, node, states: ['ready', 'staging'] }, record.nowMs())
      .then((found) => [...found].sort((a, b) => b.createdAtMs - a.createdAtMs))
    believed.set(dataset, { untilMs: performance.now() + BELIEVED_MS, copies })
    copies.catch(() => believed.delete(dataset))
    return copies
  }
  const findWhole = async (dataset: string) =>
    (await list(dataset)).find(({ state, stripe }) => state === 'ready' && !stripe)
  const open = (copy: Copy): OpenManifest => {
    let manifest = manifests.get(copy.copyId)
    if (manifest === undefined) {
      const db = openPublishedManifest(copy.directory)
      manifest = { db, find: db.prepare<[string], ObjectRow>('SELECT * FROM object WHERE key = ?') }
    }
    manifests.delete(copy.copyId)
    manifests.set(copy.copyId, manifest) // the last one used is the last one closed
    for (const [copyId, { db }] of manifests) {
      if (manifests.size <= MOST_OPEN_MANIFESTS) break
      manifests.delete(copyId)
      db.close()
    }
    return manifest
  }
  return {
    list,
    async findReady(object) {
      for (const copy of await list(object.dataset)) {
        if (copy.state !== 'ready' || !isOfSource(copy, object)) continue
        const row = open(copy).find.get(object.key)
        if (row && row.state === 1 && isSameObject(row, object)) return { copy, row, path: pathOf(copy, row) }
      }
      return undefined
    },
    async findKey(dataset, key) {
      const copy = await findWhole(dataset)
      const row = copy && open(copy).find.get(key)
      return copy && row?.state === 1 ? { copy, row, path: pathOf(copy, row) } : undefined
    },
    async listFiles(dataset) {
      const copy = await findWhole(dataset)
      if (!copy) return undefined
      const { db } = open(copy)
      return db
        .prepare<[], Pick<ObjectRow, 'key' | 'size_bytes'>>(
          'SELECT key, size_bytes FROM object WHERE state = 1 ORDER BY id',
        )
        .all()
    },
    close() {
      for (const { db } of manifests.values()) db.close()
      manifests.clear()
    },
  }
}

interface OpenManifest {
  readonly db: Database.Database
  readonly find: Database.Statement<[string], ObjectRow>
}

/** Keys were checked before they entered the manifest: they cannot leave the directory. */
export function pathOf(copy: Pick<Copy, 'directory'>, row: Pick<ObjectRow, 'key'>): string {
  return `${filesDirectory(copy.directory)}/${row.key}`
}

export function isOfSource(copy: Copy, object: Pick<WireObject, 'source'>): boolean {
  return copy.source?.source === object.source
}

export function isSameObject(row: ObjectRow, object: WireObject): boolean {
  return (
    row.size_bytes === object.sizeBytes && row.etag === object.etag && row.version_id === object.versionId
  )
}
