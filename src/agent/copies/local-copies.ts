import { setTimeout as sleep } from 'node:timers/promises'
import { filesDirectory } from '../../cache/cache-layout.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { BoundedMap } from '../../model/bounded-map.js'
import type { Copy, CopyUse } from '../../model/copy.js'
import { findOwner, isDatasetName, isSameSource } from '../../model/dataset.js'
import { FreshAnswers } from '../../platform/fresh-answers.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { findDamagedCopies } from '../../sources/damaged-copies.js'
import type { PartDigest, WireObject } from '../../sources/peer-wire.js'
import { OpenManifests } from './open-manifests.js'

/** A range of an object, in bytes. */
export interface Range {
  readonly offset: number
  readonly length: number
}

/** How long the record's answer about this node's copies stays fresh, in ms: far below the life of any lease. */
const BELIEVED_MS = 500
/** How long to wait for the record if an earlier answer is known, in ms. */
const PATIENCE_MS = 500
/**
 * How long copies are served on an earlier answer of the record alone, in ms. Nothing evicts them in that time:
 * eviction needs the record, too.
 */
const KNOWN_MS = 24 * 3_600_000
/** Maximum number of datasets whose answers are remembered: clients may ask for any name. */
const MAX_DATASETS = 10_000

/** An object, or the part of one, that this node has. */
export interface LocalObject {
  readonly copy: Copy
  readonly entry: ManifestEntry
  /** The requested part, if the range is one. */
  readonly part: PartDigest | undefined
  /** Absolute path: the copy's directory plus the manifest's key. */
  readonly path: string
}

/** The objects that this node can serve. */
export interface LocalCopies {
  /** Ready copies and downloads of a dataset, newest first. */
  list(dataset: string): Promise<readonly CopyUse[]>
  findReady(object: WireObject, range: Range): Promise<LocalObject | undefined>
  /** Finds an object of the newest ready whole copy by its key. */
  findKey(dataset: string, key: string): Promise<LocalObject | undefined>
  /** Lists the objects of the newest ready whole copy; undefined if there is no such copy. */
  listFiles(dataset: string): Promise<readonly Pick<ManifestEntry, 'key' | 'sizeBytes'>[] | undefined>
  close(): void
}

/** Looks up objects in the manifests of this node's copies, and keeps those manifests open. */
export function openLocalCopies(record: RecordStore, node: string): LocalCopies {
  const believed = new FreshAnswers<readonly CopyUse[]>({ freshMs: BELIEVED_MS, most: MAX_DATASETS })
  const known = new BoundedMap<string, { readonly atMs: number; readonly copies: readonly CopyUse[] }>(
    MAX_DATASETS,
  )
  const manifests = new OpenManifests()
  const list = (dataset: string) => {
    // Copies of one user alone are for no other node, nor for its users.
    if (!isDatasetName(dataset) || findOwner(dataset) !== undefined) return Promise.resolve([])
    return believed.get(dataset, () => {
      const asked = listSound(record, node, dataset).then((copies) => {
        known.set(dataset, { atMs: performance.now(), copies })
        return copies
      })
      return answerInTime(asked, known.get(dataset))
    })
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

/** The record's answer, or the earlier one if the record is too slow or away. */
async function answerInTime(
  asked: Promise<readonly CopyUse[]>,
  known: { readonly atMs: number; readonly copies: readonly CopyUse[] } | undefined,
): Promise<readonly CopyUse[]> {
  if (!known || performance.now() - known.atMs > KNOWN_MS) return asked
  const late = sleep(PATIENCE_MS, known.copies, { ref: false })
  return Promise.race([asked.catch(() => known.copies), late])
}

/** Ready copies and downloads, newest first, without the copies found damaged. */
async function listSound(record: RecordStore, node: string, dataset: string): Promise<readonly CopyUse[]> {
  const [copies, damaged] = await Promise.all([
    record.listCopies({ dataset, node, states: ['ready', 'staging'] }, record.nowMs()),
    findDamagedCopies(record, dataset),
  ])
  return copies.filter(({ copyId }) => !damaged.has(copyId)).sort((a, b) => b.createdAtMs - a.createdAtMs)
}

/** The path of a file. Keys were checked before they entered the manifest, so the path cannot leave the directory. */
export function pathOf(copy: Pick<Copy, 'directory'>, entry: Pick<ManifestEntry, 'key'>): string {
  return `${filesDirectory(copy.directory)}/${entry.key}`
}

/** Whether a copy is from the source that a node asks about. */
export function isOfSource(copy: Copy, object: Pick<WireObject, 'source'>): boolean {
  return copy.source !== null && isSameSource(copy.source.source, object.source)
}

/** Whether the object on this node is the one that a node asks for: same size, etag and version. */
export function isSameObject(entry: ManifestEntry, object: WireObject): boolean {
  return (
    entry.sizeBytes === object.sizeBytes && entry.etag === object.etag && entry.versionId === object.versionId
  )
}
