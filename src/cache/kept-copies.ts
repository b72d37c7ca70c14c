import { randomBytes } from 'node:crypto'
import type { DiskUsage } from '../model/policy.js'
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

/** The evicted copies in this cache's trash, oldest first. */
export function listKept(root: string): readonly KeptCopy[] {
  const trash = findHeld(root, ['trash'])
  if (trash === undefined) return []
  try {
    return trash
      .list()
      .flatMap(({ name }) => readKept(name) ?? [])
      .toSorted((a, b) => a.evictedAtMs - b.evictedAtMs || (a.name < b.name ? -1 : 1))
  } finally {
    trash.close()
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
  const parent = findHeld(root, names.slice(0, -1))
  if (parent === undefined) return false
  const trash = makeHeld(root, ['trash'])
  try {
    const name = names.at(-1)!
    parent.refuseLink(name)
    return parent.move(name, trash, `kept-${evictedAtMs}-${diskBytes}-${inodes}-${copyId}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EXDEV') return false // of a container's image: only deleted
    throw error
  } finally {
    trash.close()
    parent.close()
  }
}

/** Moves a kept copy to the folder that it has from now on. False: it is gone. */
export function takeOutKept(root: string, kept: KeptCopy, directory: string): boolean {
  const names = namesBelow(root, directory)
  const trash = findHeld(root, ['trash'])
  if (trash === undefined) return false
  const parent = makeHeld(root, names.slice(0, -1))
  try {
    const isMoved = trash.move(kept.name, parent, names.at(-1)!)
    if (isMoved) parent.sync()
    return isMoved
  } finally {
    parent.close()
    trash.close()
  }
}

/** Deletes a kept copy. It gets another name first, so that no undo brings half of it back. */
export async function dropKept(root: string, { name }: Pick<KeptCopy, 'name'>): Promise<void> {
  const trash = findHeld(root, ['trash'])
  if (trash === undefined) return
  const dropped = randomBytes(8).toString('hex')
  try {
    if (trash.move(name, trash, dropped)) await trash.remove(dropped)
  } finally {
    trash.close()
  }
}

/** The disk as admission sees it: kept copies count as free, as they go when their room is needed. */
export async function measureRoom(cache: Pick<Cache, 'measureDisk' | 'root'>): Promise<DiskUsage> {
  const kept = listKept(cache.root)
  const disk = await cache.measureDisk()
  const sum = (of: (copy: KeptCopy) => number) => kept.reduce((total, copy) => total + of(copy), 0)
  return {
    ...disk,
    freeBytes: Math.min(disk.capacityBytes, disk.freeBytes + sum(({ diskBytes }) => diskBytes)),
    inodesFree: Math.min(disk.inodesTotal, disk.inodesFree + sum(({ inodes }) => inodes)),
  }
}

/**
 * Deletes kept copies, oldest first, until what is admitted has its room on the disk. `marginPercent`: this part of the
 * disk stays free beside it, in percent, for other programs.
 */
export async function giveKeptRoom(cache: Cache, { marginPercent = 0 } = {}): Promise<void> {
  for (const dropped of await planKeptDrops(cache, { marginPercent })) await dropKept(cache.root, dropped)
}

/** The kept copies that have to go now, oldest first. */
export async function planKeptDrops(
  cache: Cache,
  { marginPercent }: { readonly marginPercent: number },
): Promise<readonly (KeptCopy & { readonly reason: string })[]> {
  const kept = listKept(cache.root)
  if (kept.length === 0) return []
  const load = measureLoad(await cache.record.sumCopies({ node: cache.node }, cache.nowMs()))
  const disk = await cache.measureDisk()
  return planDrops({ kept, disk, load, policy: cache.policy, nowMs: cache.nowMs(), marginPercent })
}
