import { setTimeout as sleep } from 'node:timers/promises'
import { filesDirectory } from '../../cache/cache-layout.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { BoundedMap } from '../../model/bounded-map.js'
import type { Copy, CopyUse } from '../../model/copy.js'
import { isDatasetName } from '../../model/dataset.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { findDamagedCopies } from '../../sources/damaged-copies.js'
import type { PartDigest, WireObject } from '../../sources/peer-wire.js'
import { OpenManifests } from './open-manifests.js'

/** A range of an object, bytes. */
export interface Range {
  readonly offset: number
  readonly length: number
}

/** How long what the record said of this node's copies is believed, ms: far below the life of any lease. */
const BELIEVED_MS = 500
/** A record that takes longer than this to answer is not waited for where something is known, ms. */
const PATIENCE_MS = 500
/**
 * How long copies are served of which only an earlier answer of the record is known, ms. Nothing evicts them
 * meanwhile: that needs the record, too.
 */
const KNOWN_MS = 24 * 3_600_000
/** Of so many datasets it is remembered what the record said: clients may ask for any name. */
const MAX_DATASETS = 10_000

/** An object that this node has whole. */
export interface LocalObject {
  readonly copy: Copy
  readonly entry: ManifestEntry
  /** The part that was asked for, where it was one. */
  readonly part: PartDigest | undefined
  /** Absolute path, made of the copy's directory and the manifest's key. */
  readonly path: string
}

/** What this node can serve. */
export interface LocalCopies {
  /** Ready copies and stagings of a dataset, newest first. */
  list(dataset: string): Promise<readonly CopyUse[]>
  findReady(object: WireObject, range: Range): Promise<LocalObject | undefined>
  /** An object of the newest ready whole copy by its key. */
  findKey(dataset: string, key: string): Promise<LocalObject | undefined>
  /** The objects of the newest ready whole copy; undefined when there is none. */
  listFiles(dataset: string): Promise<readonly Pick<ManifestEntry, 'key' | 'sizeBytes'>[] | undefined>
  close(): void
}

/** Looks up objects in the manifests of this node's copies, which it keeps open. */
export function openLocalCopies(record: RecordStore, node: string): LocalCopies {
  const believed = new BoundedMap<
    string,
    { readonly untilMs: number; readonly copies: Promise<readonly CopyUse[]> }
  >(MAX_DATASETS)
  const known = new BoundedMap<string, { readonly atMs: number; readonly copies: readonly CopyUse[] }>(
    MAX_DATASETS,
  )
  const manifests = new OpenManifests()
  const list = (dataset: string) => {
    if (!isDatasetName(dataset)) return Promise.resolve([])
    const last = believed.get(dataset)
    if (last && last.untilMs > performance.now()) return last.copies
    const asked = listSound(record, node, dataset).then((copies) => {
      known.set(dataset, { atMs: performance.now(), copies })
      return copies
    })
    const copies = answerInTime(asked, known.get(dataset))
    believed.set(dataset, { untilMs: performance.now() + BELIEVED_MS, copies })
    copies.catch(() => believed.delete(dataset))
    return copies
  }
  const findWhole = async (dataset: string) =>
    (await list(dataset)).find(({ state, stripe }) => state === 'ready' && !stripe)
  return {
    list,
    async findReady(object, range) {
      for (const copy of await list(object.dataset)) {
        if (copy.state !== 'ready' || !isOfSource(copy, object)) continue
        const found = manifests.look(copy, (manifest): LocalObject | undefined => {
          const entry = manifest.find(object.key)
          if (entry?.state !== 'present' || !isSameObject(entry, object)) return undefined
          return { copy, entry, part: manifest.parts.find(entry, range), path: pathOf(copy, entry) }
        })
        if (found) return found
      }
      return undefined
    },
    async findKey(dataset, key) {
      const copy = await findWhole(dataset)
      const entry = copy && manifests.look(copy, (manifest) => manifest.find(key))
      return copy && entry?.state === 'present'
        ? { copy, entry, part: undefined, path: pathOf(copy, entry) }
        : undefined
    },
    async listFiles(dataset) {
      const copy = await findWhole(dataset)
      const list = (manifest: Manifest) =>
        Array.from(manifest.entries('present'), ({ key, sizeBytes }) => ({ key, sizeBytes }))
      return copy && manifests.look(copy, list)
    },
    close() {
      manifests.close()
    },
  }
}

/** What the record answers; what it said before where it takes too long or is away. */
async function answerInTime(
  asked: Promise<readonly CopyUse[]>,
  known: { readonly atMs: number; readonly copies: readonly CopyUse[] } | undefined,
): Promise<readonly CopyUse[]> {
  if (!known || performance.now() - known.atMs > KNOWN_MS) return asked
  const late = sleep(PATIENCE_MS, known.copies, { ref: false })
  return Promise.race([asked.catch(() => known.copies), late])
}

/** Ready copies and stagings, newest first, without those that were found damaged. */
async function listSound(record: RecordStore, node: string, dataset: string): Promise<readonly CopyUse[]> {
  const [copies, damaged] = await Promise.all([
    record.listCopies({ dataset, node, states: ['ready', 'staging'] }, record.nowMs()),
    findDamagedCopies(record, dataset),
  ])
  return copies.filter(({ copyId }) => !damaged.has(copyId)).sort((a, b) => b.createdAtMs - a.createdAtMs)
}

/** Keys were checked before they entered the manifest: they cannot leave the directory. */
export function pathOf(copy: Pick<Copy, 'directory'>, entry: Pick<ManifestEntry, 'key'>): string {
  return `${filesDirectory(copy.directory)}/${entry.key}`
}

/** Whether a copy is of the source that a node asks about. */
export function isOfSource(copy: Copy, object: Pick<WireObject, 'source'>): boolean {
  return copy.source?.source === object.source
}

/** Whether what is here is the object that a node asks for: same size, etag and version. */
export function isSameObject(entry: ManifestEntry, object: WireObject): boolean {
  return (
    entry.sizeBytes === object.sizeBytes && entry.etag === object.etag && entry.versionId === object.versionId
  )
}
