import { symlinkSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { withClosers } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Listing } from '../../manifest/listing.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { nameHeldFolder } from '../../platform/held-folder.js'
import { holdByThisProcess } from '../../platform/processes.js'
import { markAdopted, placeOf, unmarkAdopted } from '../adopted-folder.js'
import type { Cache } from '../cache.js'
import { copyDirectory, stagingDirectoryOf } from '../cache-layout.js'
import { listIntoManifest } from '../download/list-into-manifest.js'
import { publishCopy } from '../download/publish-copy.js'
import { discardDirectory } from '../eviction/finish-evictions.js'
import { findReaders } from '../find-readers.js'
import { guardFolder } from '../guard-copy.js'
import { makeHeld, namesBelow } from '../held-cache.js'
import { KeptStageLease, STAGE_LEASE_MS } from '../leases/keep-stage-lease.js'
import { saveNode } from '../save-node.js'
import {
  findAdoptedBefore,
  findLock,
  forgetAdoptedBefore,
  isOwnSource,
  requireApart,
} from './adopted-before.js'
import { createCopyId, describeAdopted, NO_SOURCE, NOT_MARKED } from './adopted-copy.js'
import { proveFolder } from './prove-folder.js'

/** The folder to adopt as a copy, and its name. */
export interface AdoptRequest {
  readonly folder: string
  readonly name: string
  /** Source of the same files; without it the copy is locked, because dsc could not fetch it again. */
  readonly source: Dataset | undefined
  readonly signal: AbortSignal
  readonly onProgress?: (files: number) => void
}

/**
 * Seed step 1: makes an existing folder a copy in the record. Its files stay where and as they are; only a manifest of
 * them, with their digests, goes into the cache. With a source, every file must have the size and (if the source tells)
 * the checksum of its object, else COPY_DAMAGED. A source that is the folder itself does not count: evicting the folder
 * would delete it. If the folder already was a copy, that copy is forgotten. Rejects with COPY_IN_USE while that copy
 * is leased, and with USAGE for a folder that shares files with the cache or another copy. Undefined: the record
 * already has that version of the dataset.
 */
export async function adoptFolder(cache: Cache, request: AdoptRequest): Promise<Copy | undefined> {
  const folder = await realpath(request.folder).catch(() => undefined)
  if (folder === undefined || !(await stat(folder)).isDirectory()) {
    throw new DscError('SOURCE_NOT_FOUND', `${request.folder} is not a folder`, {
      hint: 'dsc adopt <folder>',
    })
  }
  const isOwn = request.source !== undefined && (await isOwnSource(folder, request.source))
  const source = isOwn ? undefined : request.source
  await requireApart(cache, { folder, isDeletable: source !== undefined })
  const { include = [], exclude = [] } = request.source ?? {}
  const dataset: Dataset = source ?? {
    ...{ name: request.name, source: `${pathToFileURL(folder)}/` },
    ...{ include, exclude },
  }
  if (findReaders(cache, dataset)) await requireClosed(folder, dataset.name)
  const turn = await reserve(cache, dataset)
  const kept = new KeptStageLease(cache, turn, { signal: request.signal })
  try {
    return await adopt(cache, {
      ...request,
      folder,
      source,
      dataset,
      staging: stagingDirectoryOf(cache.root, turn.copy.copyId),
      signal: kept.signal,
    })
  } finally {
    await kept.stop()
    await discardDirectory(cache, stagingDirectoryOf(cache.root, turn.copy.copyId))
    const { stageLeaseId, leaseId: useLeaseId } = turn
    const ended = { copyId: turn.copy.copyId, stageLeaseId, useLeaseId, isForgotten: true }
    await cache.record.endStaging(ended, cache.nowMs())
  }
}

/** An adopted folder keeps its modes: those of a dataset with readers are its owner's to set. */
async function requireClosed(folder: string, name: string): Promise<void> {
  if (((await stat(folder)).mode & 0o007) === 0) return
  throw new DscError('USAGE', `everybody may read ${folder}, and ${name} has readers`, {
    hint: `chmod o= ${folder}`,
  })
}

/**
 * Adopts a folder as a user names it: under a source that the record learns, or else that of the dataset of this name,
 * if there is one. Rejects as `adoptFolder`.
 */
export async function adoptNamed(
  cache: Cache,
  request: Omit<AdoptRequest, 'source'> & {
    readonly source?: Pick<Dataset, 'source' | 'endpoint' | 'pathStyle'> | undefined
  },
): Promise<Copy | undefined> {
  await saveNode(cache)
  const { name, source } = request
  const declared = cache.declared?.find((dataset) => dataset.name === name)
  if (source === undefined)
    return adoptFolder(cache, { ...request, source: declared ?? (await cache.record.findDataset(name)) })
  const dataset: Dataset = { name, include: [], exclude: [], ...source }
  await cache.record.saveDataset(dataset, cache.nowMs())
  return adoptFolder(cache, { ...request, source: dataset })
}

let adoptions = 0

/** Reserves a row in the record while the folder is read, so that a cleanup knows who uses the directory. */
async function reserve(cache: Cache, dataset: Dataset) {
  const nowMs = cache.nowMs()
  const holder = holdByThisProcess()
  const lease = {
    task: `dsc adopt:${process.pid}.${++adoptions}`,
    holder,
    expiresAtMs: nowMs + STAGE_LEASE_MS,
  }
  const joined = await cache.record.joinOrReserve(
    {
      dataset: dataset.name,
      node: cache.node,
      lease,
      stager: lease,
      source: dataset,
      origin: 'local',
      directoryOf: (copyId) => stagingDirectoryOf(cache.root, copyId),
      isRefresh: true,
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
  request: AdoptRequest & { readonly dataset: Dataset; readonly staging: string },
): Promise<Copy | undefined> {
  const { folder, name, dataset, staging } = request
  const copyId = createCopyId()
  await discardDirectory(cache, staging) // leftovers of a killed stager, perhaps of another source
  const listing = await proveInto(cache, request)
  const { version } = listing
  const known = { dataset: name, node: cache.node }
  const own = await cache.record.listCopies({ ...known, states: ['ready'] }, cache.nowMs())
  if (own.some((copy) => copy.version === version)) return undefined
  const before = await findAdoptedBefore(cache, folder)
  const directory = copyDirectory(cache.root, { dataset: name, version, copyId })
  const place = placeOf(cache, { dataset: name, version, copyId, path: folder })
  const isOurs = markAdopted(place)
  const keptBecause = request.source === undefined ? NO_SOURCE : isOurs ? undefined : NOT_MARKED
  await publishCopy({ root: cache.root, copyDirectory: staging, finalDirectory: directory })
  const nowMs = cache.nowMs()
  const described = await describeAdopted({
    copyId,
    node: cache.node,
    dataset,
    listing,
    directory,
    path: folder,
    isElsewhere: true,
    keptBecause,
    nowMs,
  })
  const copy = { ...described, lock: described.lock ?? findLock(before) }
  if (await cache.record.addAdopted(copy, nowMs)) {
    await forgetAdoptedBefore(cache, before, `${folder} was adopted anew as ${name}`)
    return copy
  }
  // Another adoption was quicker, or a cleanup found the directory and, rightly, added it to the record.
  const copies = await cache.record.listCopies(known, nowMs)
  const taken = copies.find((other) => other.directory === directory)
  if (!taken) {
    await discardDirectory(cache, directory)
    unmarkAdopted(place)
  }
  return taken
}

/** Lists the source into the staging and compares the folder with it in place. */
async function proveInto(
  cache: Cache,
  request: AdoptRequest & { readonly dataset: Dataset; readonly staging: string },
): Promise<Listing> {
  const { folder, dataset, signal } = request
  const held = makeHeld(cache.root, namesBelow(cache.root, request.staging))
  const proving = withClosers(async (closers) => {
    closers.add(() => held.close())
    const readers = findReaders(cache, dataset)
    if (readers) await guardFolder(held.path, readers)
    const source = await cache.openSource(dataset)
    closers.add(() => source.close())
    const listing = await listIntoManifest({ source, dataset, copyDirectory: held.path, signal })
    await held.remove('files')
    symlinkSync(folder, held.pathOf('files'))
    await proveFolder({ ...request, source, copyDirectory: held.path })
    return listing
  })
  return proving.catch((error: unknown) => Promise.reject(nameHeldFolder(error, held)))
}

/** The dataset name suggested by a folder: its own, with dashes in place of characters that a name may not have. */
export function datasetNameOf(folder: string): string {
  const last = folder.split('/').findLast((part) => part !== '') ?? 'folder'
  return last.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '') || 'folder'
}
