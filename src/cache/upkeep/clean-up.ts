import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isDscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { unlessCode } from '../../failure/unless-code.js'
import type { Copy, CopyUse } from '../../model/copy.js'
import type { DiskUsage } from '../../model/policy.js'
import { isGone } from '../../platform/is-gone.js'
import { checkProcess } from '../../platform/processes.js'
import { isAbandoned, isEvictable, planToDelete } from '../../policy/plan-eviction.js'
import { holdAdopted, isMarked, placeOf, unmarkAdopted } from '../adopted-folder.js'
import type { Cache } from '../cache.js'
import { copiesDirectory, repairPrefix, trashDirectory } from '../cache-layout.js'
import { finishOwnEviction } from '../eviction/evict-copies.js'
import { discardDirectory, finishEvictions, publishedDirectoryOf } from '../eviction/finish-evictions.js'
import { findHeld } from '../held-cache.js'
import { dropKept, measureRoom, planKeptDrops, readKept } from '../kept-copies.js'
import { findDeadLeases } from '../leases/find-dead-leases.js'
import { adoptPublishedDirectory } from './adopt-published.js'
import { findDoubtful } from './find-doubtful.js'
import { CacheDirectories } from './observe-directories.js'
import { type CleanUpAction, isOverPolicy, planCleanUp } from './plan-clean-up.js'

/** The task of a cleanup's evictions in the history. */
export const CLEAN_UP_TASK = 'dsc cleanup'

/** Above this number of datasets, all copies of the node are read at once. */
const MAX_DATASETS = 1000

/** Looks at the record and the disk and decides what a cleanup of this node would do. Changes nothing. */
export async function planCleanUpOf(
  cache: Cache,
  options: { readonly abandonedAfterMs: number },
): Promise<readonly CleanUpAction[]> {
  // Directories first: a staging is in the record before its directory is created, so a directory that is found here
  // and is not in the record afterwards belongs to no staging.
  const directories = new CacheDirectories(cache.root)
  const stagingDirectories = [...directories.list('staging')]
  const links = directories.countLinks('copies')
  const trash = directories.list('trash')
  const leases = await cache.record.listLeases({ node: cache.node })
  const hasSlurm = leases.some(({ holder }) => holder.kind === 'slurm')
  const slurmJobs = hasSlurm ? await cache.listSlurmJobs() : undefined
  const nowMs = cache.nowMs()
  const disk = await measureRoom(cache)
  const places = await cache.record.listPlaces(cache.node)
  const doubtful = findDoubtful({ copiesRoot: copiesDirectory(cache.root), links, places, isGone })
  const found = [...doubtful].flatMap((dataset) =>
    links.has(dataset) ? directories.list('copies', dataset) : [],
  )
  const copies = await readCopies(cache, { doubtful, disk, nowMs })
  const known = new Set(copies.flatMap((copy) => [copy.directory, publishedDirectoryOf(cache, copy)]))
  const ready = copies.filter(({ state }) => state === 'ready')
  const missing = ready.filter((copy) => isGone(copy.path))
  for (const copy of ready.filter(({ origin }) => origin === 'local')) {
    if (!missing.includes(copy)) stagingDirectories.push(...listRepairs(cache, copy))
  }
  return planCleanUp({
    copies,
    leases,
    dead: findDeadLeases(leases, { checkProcess, slurmJobs, nowMs }),
    stagingDirectories,
    copyDirectories: found
      .filter((path) => !known.has(path))
      .map((path) => directories.describe(path, Date.now()))
      .filter((directory) => directory !== undefined),
    trash: trash.filter((path) => readKept(basename(path)) === undefined),
    dropped: (await planKeptDrops(cache)).map(({ name, reason }) => ({
      path: join(trashDirectory(cache.root), name),
      reason,
    })),
    refused: directories.refused,
    missingCopyIds: new Set(missing.map(({ copyId }) => copyId)),
    publishedDirectoryOf: (copy) => publishedDirectoryOf(cache, copy),
    repairPrefixOf: (copy) => repairPrefix(cache.root, copy),
    policy: cache.policy,
    disk,
    nowMs,
    abandonedAfterMs: options.abandonedAfterMs,
  })
}

/** The copies that may need action: those of doubtful datasets, or all if the policy is exceeded. */
async function readCopies(
  { record, node, policy }: Cache,
  seen: { readonly doubtful: ReadonlySet<string>; readonly disk: DiskUsage; readonly nowMs: number },
): Promise<readonly CopyUse[]> {
  const { doubtful, disk, nowMs } = seen
  if (doubtful.size > MAX_DATASETS || isOverPolicy({ policy, disk }, await record.sumCopies({ node }, nowMs)))
    return record.listCopies({ node }, nowMs)
  return record.listCopies({ node, datasets: [...doubtful] }, nowMs)
}

/** Leftovers of repairs in an adopted folder, if this cache adopted it. */
function listRepairs(cache: Cache, copy: Copy): readonly string[] {
  const { version } = copy
  if (version === null || !isMarked(placeOf(cache, { ...copy, version }))) return []
  const prefix = repairPrefix(cache.root, copy)
  return listNames(copy.path)
    .map((name) => `${copy.path}/${name}`)
    .filter((path) => path.startsWith(prefix))
}

/** Empty for a folder that another user closed, or that something else replaced: its owner must see to it. */
function listNames(folder: string): readonly string[] {
  return unlessCode(['EACCES', 'ENOENT', 'ENOTDIR'], () => readdirSync(folder)) ?? []
}

/**
 * Carries out a plan. Every action checks again: a copy leased since the plan stays. Returns the actions done. Rejects
 * with INTERRUPTED between two actions once `signal` aborts; the next cleanup does the rest.
 */
export async function applyCleanUp(
  cache: Cache,
  actions: readonly CleanUpAction[],
  { signal, by }: { readonly signal: AbortSignal; readonly by?: string | undefined },
): Promise<readonly CleanUpAction[]> {
  const deed = { by, atMs: cache.nowMs() }
  const done: CleanUpAction[] = []
  const dead = actions.flatMap((action) =>
    action.kind === 'expire-lease' ? [{ leaseId: action.lease.leaseId, reason: action.reason }] : [],
  )
  if (dead.length > 0) await cache.record.expireLeases(dead, cache.nowMs())
  for (const action of actions) {
    throwIfStopped(signal)
    try {
      if (await apply(cache, action, deed)) done.push(action)
    } catch (error) {
      // A misplaced entry must not stop the rest of the cleanup.
      if (!isDscError(error, 'CACHE_ROOT_INVALID')) throw error
      done.push({ kind: 'leave', path: pathOf(cache, action), reason: error.message })
    }
  }
  return done
}

function pathOf(cache: Cache, action: CleanUpAction): string {
  if ('path' in action) return action.path
  return 'copy' in action ? (publishedDirectoryOf(cache, action.copy) ?? action.copy.directory) : cache.root
}

/** `atMs`: when the cleanup began; all its evictions have this time in the history, as they are one deed. */
interface CleanUpDeed {
  readonly by: string | undefined
  readonly atMs: number
}

async function apply(cache: Cache, action: CleanUpAction, deed: CleanUpDeed): Promise<boolean> {
  switch (action.kind) {
    case 'expire-lease':
    case 'leave':
      return true
    case 'finish-eviction':
      await finishEvictions(cache, [action.copy])
      return true
    case 'empty-trash':
      await emptyTrash(cache, action.path)
      return true
    case 'remove-directory':
      return removeUnknown(cache, action.path)
    case 'adopt-directory':
      return adoptPublishedDirectory(cache, action.path)
    case 'forget-copy':
      return forgetCopy(cache, action.copy, action.reason)
    case 'evict':
      return evictIfIdle(cache, action, deed)
  }
}

async function emptyTrash(cache: Cache, path: string): Promise<void> {
  const kept = readKept(basename(path))
  if (kept) return dropKept(cache.root, kept)
  using trash = findHeld(cache.root, ['trash'])
  await trash?.remove(basename(path))
}

/** A prepare may have staged the same version since the plan was made. Its row is older than its directory. */
async function removeUnknown(cache: Cache, path: string): Promise<boolean> {
  const copies = await cache.record.listCopies({ node: cache.node }, cache.nowMs())
  if (copies.some((copy) => copy.directory === path || publishedDirectoryOf(cache, copy) === path))
    return false
  const adopted = copies.find((copy) => copy.origin === 'local' && path.startsWith(`${copy.path}/`))
  if (adopted?.version == null) await discardDirectory(cache, path)
  else {
    using folder = holdAdopted(placeOf(cache, { ...adopted, version: adopted.version }))
    await folder.remove(basename(path))
  }
  return true
}

async function forgetCopy(cache: Cache, copy: Copy, reason: string): Promise<boolean> {
  if ((await cache.record.forgetCopies([copy.copyId], reason, cache.nowMs())) === 0) return false
  const published = publishedDirectoryOf(cache, copy)
  if (published !== undefined) await discardDirectory(cache, published) // an adopted folder's manifest is still there
  if (copy.version !== null && copy.origin === 'local') {
    unmarkAdopted(placeOf(cache, { ...copy, version: copy.version }))
  }
  return true
}

async function evictIfIdle(
  cache: Cache,
  { copy: { copyId }, reason }: Extract<CleanUpAction, { kind: 'evict' }>,
  { by, atMs }: CleanUpDeed,
): Promise<boolean> {
  const plan = await cache.record.beginEviction(
    { node: cache.node, only: { copyId }, task: CLEAN_UP_TASK, by },
    (copies) =>
      planToDelete(
        copies.filter((copy) => isEvictable(copy) || isAbandoned(copy)),
        reason,
      ),
    atMs,
  )
  await finishOwnEviction(cache, plan, { by })
  return plan.victims.length > 0
}
