import { randomBytes } from 'node:crypto'
import { mkdir, realpath, rm, stat, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import type { Cache } from './cache.js'
import { copyDirectory, filesDirectory, stagingDirectoryOf } from './cache-layout.js'
import { discardDirectory } from './finish-evictions.js'
import { listIntoManifest } from './list-into-manifest.js'
import { measureCopy } from './measure-copy.js'
import { proveFolder } from './prove-folder.js'
import { publishCopy } from './publish-copy.js'

export interface AdoptRequest {
  readonly folder: string
  readonly name: string
  /** Where the same files can be had again; without it the copy is locked, because nobody could fetch it again. */
  readonly source: Dataset | undefined
  readonly signal: AbortSignal
  readonly onProgress?: (files: number) => void
}

/**
 * Seed step 1: makes a folder that is on disk already a copy in the record. Its files stay where they are and as
 * they are; only a manifest of them, with their digests, is put into the cache. With a source, every file must
 * be there in the size and (where the source tells) with the checksum that the source has, else COPY_DAMAGED.
 * Undefined: that version of the dataset is in the record already.
 */
export async function adoptFolder(cache: Cache, request: AdoptRequest): Promise<Copy | undefined> {
  const folder = await realpath(request.folder).catch(() => undefined)
  if (folder === undefined || !(await stat(folder)).isDirectory()) {
    throw new DscError('SOURCE_NOT_FOUND', `${request.folder} is not a folder`, {
      hint: 'dsc adopt <folder>',
    })
  }
  const local: Dataset = { name: request.name, source: `${pathToFileURL(folder)}/`, include: [], exclude: [] }
  const copyId = randomBytes(8).toString('hex')
  const staging = stagingDirectoryOf(cache.root, copyId)
  await mkdir(staging, { recursive: true })
  try {
    const dataset = request.source ?? local
    const source = await cache.openSource(dataset)
    const listing = await listIntoManifest({
      source,
      dataset,
      copyDirectory: staging,
      signal: request.signal,
    }).finally(() => source.close())
    await rm(filesDirectory(staging), { recursive: true })
    await symlink(folder, filesDirectory(staging))
    await proveFolder({ copyDirectory: staging, ...request })
    const directory = copyDirectory(cache.root, request.name, listing.version)
    const own = await cache.record.listCopies({ dataset: request.name, node: cache.node }, cache.nowMs())
    if (own.some(({ version }) => version === listing.version)) {
      await discardDirectory(cache, staging)
      return undefined
    }
    await mkdir(dirname(directory), { recursive: true })
    await discardDirectory(cache, directory)
    await publishCopy({ copyDirectory: staging, finalDirectory: directory })
    const [manifest, files] = [await measureCopy(directory), await measureCopy(folder)]
    const nowMs = cache.nowMs()
    const chargedBytes = manifest.diskBytes + files.diskBytes
    const lock = { by: 'dsc adopt', reason: 'no remote source is known', atMs: nowMs }
    const copy: Copy = {
      copyId,
      dataset: request.name,
      node: cache.node,
      version: listing.version,
      state: 'ready',
      origin: 'local',
      source: request.source ?? null,
      directory,
      path: folder,
      chargedBytes,
      chargedInodes: manifest.inodes + files.inodes,
      writtenBytes: chargedBytes,
      files: listing.files,
      contentBytes: listing.contentBytes,
      lock: request.source ? null : lock,
      lastTask: null,
      lastUsedAtMs: nowMs,
      createdAtMs: nowMs,
      readyAtMs: nowMs,
    }
    return (await cache.record.addAdopted(copy, nowMs)) ? copy : undefined
  } catch (error) {
    await discardDirectory(cache, staging)
    throw error
  }
}

/** The dataset name that a folder suggests: its own, with dashes for what a name may not contain. */
export function datasetNameOf(folder: string): string {
  const last = folder.split('/').findLast((part) => part !== '') ?? 'folder'
  return last.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '') || 'folder'
}
