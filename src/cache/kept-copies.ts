import { randomBytes } from 'node:crypto'
import { isDscError } from '../failure/dsc-error.js'
import type { DiskUsage } from '../model/policy.js'
import { isRefused } from '../platform/disk-failure.js'
import { type KeptSpace, planDrops } from '../policy/plan-drops.js'
import { measureLoad } from '../policy/plan-eviction.js'
import type { Cache } from './cache.js'
import { findHeld, makeHeld, namesBelow } from './held-cache.js'

/** An evicted copy whose files are still in the trash, so that an undo can bring it back. */
export interface KeptCopy extends KeptSpace {
  /** Its name in the trash, which says all the rest: one rename writes both. */
  readonly name: string
  readonly copyId: string
}

const KEPT_NAME = /^kept-(\d{1,15})-(\d{1,16})-(\d{1,15})-([0-9a-z-]{1,80})$/
const DROPPED_NAME = /^dropped-[0-9a-f]{16}$/

/** The evicted copies in this cache's trash, oldest first. */
export function listKept(root: string): readonly KeptCopy[] {
  return listTrash(root)
    .flatMap((name) => readKept(name) ?? [])
    .toSorted((a, b) => a.evictedAtMs - b.evictedAtMs || (a.name < b.name ? -1 : 1))
}

/** Names in the trash of kept copies that are being deleted: their room is neither free yet nor counted as free. */
export function listDropped(root: string): readonly string[] {
  return listTrash(root).filter((name) => DROPPED_NAME.test(name))
}

/** Empty where the trash is closed to this user, or is no folder: a cleanup tells its owner. */
function listTrash(root: string): readonly string[] {
  try {
    using trash = findHeld(root, ['trash'])
    return trash?.list().map(({ name }) => name) ?? []
  } catch (error) {
    if (isDscError(error, 'CACHE_ROOT_INVALID') || isRefused(error)) return []
    throw error
  }
}

/** Reads the name of an entry of the trash; undefined: it is being deleted. */
export function readKept(name: string): KeptCopy | undefined {
  const [, atMs, diskBytes, inodes, copyId] = KEPT_NAME.exec(name) ?? []
  if (copyId === undefined) return undefined
  return { name, copyId, evictedAtMs: Number(atMs), diskBytes: Number(diskBytes), inodes: Number(inodes) }
}

/** Moves the folder of an evicted copy to where an undo finds it. False: it is gone, or cannot be moved. */
export function keepCopy(root: string, directory: string, kept: Omit<KeptCopy, 'name'>): boolean {
  const { copyId, evictedAtMs, diskBytes, inodes } = kept
  const names = namesBelow(root, directory)
  using parent = findHeld(root, names.slice(0, -1))
  if (parent === undefined) return false
  using trash = makeHeld(root, ['trash'])
  try {
    const name = names.at(-1)!
    parent.refuseLink(name)
    return parent.move(name, trash, `kept-${evictedAtMs}-${diskBytes}-${inodes}-${copyId}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EXDEV') return false // of a container's image: only deleted
    throw error
  }
}

/** Moves a kept copy to the folder that it has from now on. False: it is gone. */
export function takeOutKept(root: string, kept: KeptCopy, directory: string): boolean {
  const names = namesBelow(root, directory)
  using trash = findHeld(root, ['trash'])
  if (trash === undefined) return false
  using parent = makeHeld(root, names.slice(0, -1))
  trash.refuseLink(kept.name)
  const isMoved = trash.move(kept.name, parent, names.at(-1)!)
  if (isMoved) parent.sync()
  return isMoved
}

/** Deletes a kept copy. It gets another name first, so that no undo brings half of it back. */
export async function dropKept(root: string, { name }: Pick<KeptCopy, 'name'>): Promise<void> {
  using trash = findHeld(root, ['trash'])
  if (trash === undefined) return
  const dropped = `dropped-${randomBytes(8).toString('hex')}`
  if (trash.move(name, trash, dropped)) await trash.remove(dropped)
}

/** Helps other processes with the kept copies that they are deleting. What cannot be deleted is left to a cleanup. */
export async function finishDrops(root: string): Promise<void> {
  const names = listDropped(root)
  using trash = names.length > 0 ? findHeld(root, ['trash']) : undefined
  try {
    for (const name of names) await trash?.remove(name)
  } catch (error) {
    if (!isDscError(error, 'CACHE_ROOT_INVALID')) throw error
  }
}

/** The disk as admission sees it: kept copies count as free, as they go when their room is needed. */
export async function measureRoom(cache: Pick<Cache, 'measureDisk' | 'root'>): Promise<DiskUsage> {
  const disk = await cache.measureDisk()
  const kept = listKept(cache.root) // after the disk: one that goes in between must not count twice
  const sum = (of: (copy: KeptCopy) => number) => kept.reduce((total, copy) => total + of(copy), 0)
  return {
    ...disk,
    freeBytes: Math.min(disk.capacityBytes, disk.freeBytes + sum(({ diskBytes }) => diskBytes)),
    inodesFree: Math.min(disk.inodesTotal, disk.inodesFree + sum(({ inodes }) => inodes)),
  }
}

/** The room that kept copies leave free beside what is admitted; the larger of the two counts. */
export interface RoomForOthers {
  /** Part of the disk, in percent. */
  readonly percent?: number
  readonly bytes?: number
}

/** For programs that cannot ask dsc for their room. */
export const FOR_OTHERS: RoomForOthers = { percent: 5 }

/** Deletes kept copies, oldest first, until what is admitted and `others` have their room on the disk. */
export async function giveKeptRoom(cache: Cache, others = FOR_OTHERS): Promise<void> {
  if ((await planKeptDrops(cache, others)).length === 0) return
  await finishDrops(cache.root) // that may be enough
  for (const dropped of await planKeptDrops(cache, others)) await dropKept(cache.root, dropped)
  await finishDrops(cache.root) // another process may have begun with the same ones
}

/** The kept copies that have to go now, oldest first. */
export async function planKeptDrops(
  cache: Cache,
  { percent = 0, bytes = 0 } = FOR_OTHERS,
): Promise<readonly (KeptCopy & { readonly reason: string })[]> {
  const kept = listKept(cache.root)
  if (kept.length === 0) return []
  const load = measureLoad(await cache.record.sumCopies({ node: cache.node }, cache.nowMs()))
  const disk = await cache.measureDisk()
  const marginBytes = Math.max(bytes, Math.ceil((disk.capacityBytes * percent) / 100))
  return planDrops({ kept, disk, load, policy: cache.policy, nowMs: cache.nowMs(), marginBytes })
}
