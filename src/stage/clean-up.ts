import { readdirSync } from 'node:fs'
import { isGone } from '../platform/is-gone.js'
import { checkProcess } from '../platform/processes.js'
import { adoptPublishedDirectory } from './adopt-published.js'
import type { Cache } from './cache.js'
import { copiesDirectory, repairPrefix, stagingDirectory, trashDirectory } from './cache-layout.js'
import { discardDirectory, finishEvictions, publishedDirectoryOf } from './finish-evictions.js'
import { findDeadLeases } from './plan/find-dead-leases.js'
import { type CleanUpAction, isAbandoned, planCleanUp } from './plan/plan-clean-up.js'
import { readCopyManifest } from './read-copy-manifest.js'
import { removeDirectory } from './remove-directory.js'

/** History older than this is forgotten: a quarter. */
const HISTORY_MS = 92 * 24 * 3_600_000

/** Looks at record and disk and decides what a cleanup of this node would do. Touches nothing. */
export async function planCleanUpOf(
  cache: Cache,
  options: { readonly abandonedAfterMs: number },
): Promise<readonly CleanUpAction[]> {
  // Directories first: a staging is in the record before its directory is made, so what is found here and
  // not in the record afterwards belongs to nobody.
  const stagingDirectories = [...listDirectories(stagingDirectory(cache.root))]
  const found = listDirectories(copiesDirectory(cache.root)).flatMap(listDirectories)
  const trash = listDirectories(trashDirectory(cache.root))
  const leases = await cache.record.listLeases({ node: cache.node })
  const hasSlurm = leases.some(({ holder }) => holder.kind === 'slurm')
  const slurmJobs = hasSlurm ? await cache.listSlurmJobs() : undefined
  const nowMs = cache.nowMs()
  const copies = await cache.record.listCopies({ node: cache.node }, nowMs)
  const known = new Set(copies.map(({ directory }) => directory))
  const missingCopyIds = new Set<string>()
  for (const copy of copies.filter(({ state }) => state === 'ready')) {
    if (isGone(copy.path)) missingCopyIds.add(copy.copyId)
    else if (copy.origin === 'local') {
      const prefix = repairPrefix(cache.root, copy)
      const entries = listDirectories(copy.path)
      stagingDirectories.push(...entries.filter((path) => path.startsWith(prefix)))
    }
  }
  return planCleanUp({
    copies,
    leases,
    dead: findDeadLeases(leases, { checkProcess, slurmJobs, nowMs }),
    stagingDirectories,
    copyDirectories: found
      .filter((path) => !known.has(path))
      .map((path) => ({ path, isComplete: readCopyManifest(path)?.isComplete === true })),
    trash,
    missingCopyIds,
    publishedDirectoryOf: (copy) => publishedDirectoryOf(cache, copy),
    repairPrefixOf: (copy) => repairPrefix(cache.root, copy),
    policy: cache.policy,
    disk: await cache.measureDisk(),
    nowMs,
    abandonedAfterMs: options.abandonedAfterMs,
  })
}

/** Carries out a plan. Every action checks again: what was leased meanwhile stays. Returns what was done. */
export async function applyCleanUp(
  cache: Cache,
  actions: readonly CleanUpAction[],
): Promise<readonly CleanUpAction[]> {
  const done: CleanUpAction[] = []
  const dead = actions.flatMap((action) =>
    action.kind === 'expire-lease' ? [{ leaseId: action.lease.leaseId, reason: action.reason }] : [],
  )
  if (dead.length > 0) await cache.record.expireLeases(dead, cache.nowMs())
  for (const action of actions) {
    if (await apply(cache, action)) done.push(action)
  }
  await cache.record.pruneEvents(cache.nowMs() - HISTORY_MS)
  return done
}

async function apply(cache: Cache, action: CleanUpAction): Promise<boolean> {
  switch (action.kind) {
    case 'expire-lease':
      return true
    case 'finish-eviction':
      await finishEvictions(cache, [action.copy])
      return true
    case 'empty-trash':
      await removeDirectory(action.path)
      return true
    case 'remove-directory': {
      // A prepare may have staged the same version since the plan was made. Its row is older than its directory.
      const copies = await cache.record.listCopies({ node: cache.node }, cache.nowMs())
      if (
        copies.some(
          (copy) => copy.directory === action.path || publishedDirectoryOf(cache, copy) === action.path,
        )
      ) {
        return false
      }
      await discardDirectory(cache, action.path)
      return true
    }
    case 'adopt-directory':
      return adoptOrRemove(cache, action.path)
    case 'forget-copy':
      if ((await cache.record.forgetCopies([action.copy.copyId], action.reason, cache.nowMs())) === 0)
        return false
      await discardDirectory(cache, action.copy.directory) // of an adopted folder, the manifest is still there
      return true
    case 'evict':
      return evictIfIdle(cache, action.copy.copyId, action.reason)
  }
}

/** A complete copy that the record lost is taken back; one that the record has elsewhere is one too many. */
async function adoptOrRemove(cache: Cache, directory: string): Promise<boolean> {
  if (await adoptPublishedDirectory(cache, directory)) return true
  const copies = await cache.record.listCopies({ node: cache.node }, cache.nowMs())
  if (
    copies.some((copy) => copy.directory === directory || publishedDirectoryOf(cache, copy) === directory)
  ) {
    return false
  }
  await discardDirectory(cache, directory)
  return true
}

async function evictIfIdle(cache: Cache, copyId: string, reason: string): Promise<boolean> {
  const plan = await cache.record.beginEviction(
    cache.node,
    (copies) => {
      const victims = copies
        .filter((copy) => copy.copyId === copyId && copy.state !== 'evicting')
        .filter(
          (copy) =>
            isAbandoned(copy) || (copy.state === 'ready' && copy.referenceCount === 0 && copy.lock === null),
        )
        .map((copy) => ({ copy, reason }))
      return { victims, freedBytes: 0, shortfalls: [], evictableBytes: 0, evictableCopies: victims.length }
    },
    'dsc cleanup',
    cache.nowMs(),
  )
  await finishEvictions(
    cache,
    plan.victims.map(({ copy }) => copy),
  )
  return plan.victims.length > 0
}

/** Synchronous: with a folder per dataset, a promise for each would take longer and more memory than the call. */
function listDirectories(parent: string): readonly string[] {
  try {
    return readdirSync(parent).map((name) => `${parent}/${name}`)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))) return []
    throw error
  }
}
