import { randomBytes } from 'node:crypto'
import { mkdir, realpath, rm, stat, symlink } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { identifyProcess } from '../platform/processes.js'
import { lockAdopted } from './adopt-published.js'
import type { Cache } from './cache.js'
import { copyDirectory, filesDirectory, stagingDirectoryOf } from './cache-layout.js'
import { discardDirectory } from './finish-evictions.js'
import { keepStageLease, STAGE_LEASE_MS } from './keep-stage-lease.js'
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
  const turn = await reserve(cache, request.source ?? local)
  const kept = keepStageLease(cache, turn, { signal: request.signal })
  try {
    return await adopt(
      cache,
      { ...request, folder, signal: kept.signal },
      request.source ?? local,
      turn.copy.directory,
    )
  } finally {
    await kept.stop()
    await discardDirectory(cache, turn.copy.directory)
    const { stageLeaseId, leaseId: useLeaseId } = turn
    const ended = { copyId: turn.copy.copyId, stageLeaseId, useLeaseId, isForgotten: true }
    await cache.record.endStaging(ended, cache.nowMs())
  }
}

/** A row in the record while the folder is read, so that a cleanup knows whose directory that is. */
async function reserve(cache: Cache, dataset: Dataset) {
  const nowMs = cache.nowMs()
  const holder = identifyProcess(process.pid) ?? { kind: 'ttl' as const }
  const lease = { task: `dsc adopt:${process.pid}`, holder, expiresAtMs: nowMs + STAGE_LEASE_MS }
  const joined = await cache.record.joinStaging(
    {
      ...{ dataset: dataset.name, node: cache.node, lease, stager: lease, source: dataset, origin: 'local' },
      ...{ directoryOf: (copyId) => stagingDirectoryOf(cache.root, copyId), isRefresh: true },
    },
    nowMs,
  )
  if (joined.outcome === 'stage') return joined
  await cache.record.releaseUses({ leaseId: joined.leaseId }, cache.nowMs())
  throw new DscError('STAGING_ELSEWHERE', `${dataset.name} is being staged on this node already`, {
    hint: 'wait for it, or adopt the folder under another --name',
  })
}

async function adopt(
  cache: Cache,
  request: AdoptRequest,
  dataset: Dataset,
  staging: string,
): Promise<Copy | undefined> {
  const { folder, name, signal } = request
  const copyId = randomBytes(8).toString('hex')
  await discardDirectory(cache, staging) // what a killed stager left, perhaps of another source
  await mkdir(staging, { recursive: true })
  const source = await cache.openSource(dataset)
  const listing = await listIntoManifest({ source, dataset, copyDirectory: staging, signal }).finally(() =>
    source.close(),
  )
  await rm(filesDirectory(staging), { recursive: true })
  await symlink(folder, filesDirectory(staging))
  await proveFolder({ copyDirectory: staging, ...request })
  const { version } = listing
  const own = await cache.record.listCopies(
    { dataset: name, node: cache.node, states: ['ready'] },
    cache.nowMs(),
  )
  if (own.some((copy) => copy.version === version)) return undefined
  const directory = copyDirectory(cache.root, { dataset: name, version, copyId })
  await publishCopy({ copyDirectory: staging, finalDirectory: directory })
  const [manifest, files] = [await measureCopy(directory), await measureCopy(folder)]
  const nowMs = cache.nowMs()
  const chargedBytes = manifest.diskBytes + files.diskBytes
  const copy: Copy = {
    ...{ copyId, dataset: name, node: cache.node, version, state: 'ready', origin: 'local', directory },
    source: request.source ?? null,
    path: folder,
    chargedBytes,
    chargedInodes: manifest.inodes + files.inodes,
    writtenBytes: chargedBytes,
    files: listing.files,
    contentBytes: listing.contentBytes,
    lock: request.source ? null : lockAdopted(nowMs),
    ...{ lastTask: null, lastUsedAtMs: nowMs, createdAtMs: nowMs, readyAtMs: nowMs },
  }
  if (await cache.record.addAdopted(copy, nowMs)) return copy
  // Another adoption was quicker, or a cleanup found the directory and took it into the record as it should be.
  const [taken] = (await cache.record.listCopies({ dataset: name, node: cache.node }, nowMs)).filter(
    (known) => known.directory === directory,
  )
  if (!taken) await discardDirectory(cache, directory)
  return taken
}

/** The dataset name that a folder suggests: its own, with dashes for what a name may not contain. */
export function datasetNameOf(folder: string): string {
  const last = folder.split('/').findLast((part) => part !== '') ?? 'folder'
  return last.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '') || 'folder'
}
