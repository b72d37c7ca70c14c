import { constants, copyFile, link, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/config.js'
import { formatByteSize } from '../../model/byte-size.js'
import type { DiskUsage } from '../../model/policy.js'
import { readDiskUsage } from '../../platform/disk-usage.js'
import { readFileSystemKind } from '../../platform/file-system-kind.js'
import { findNearestExisting } from '../../platform/nearest-folder.js'
import { type Check, errorCodeOf, failed, ok, warning } from './check.js'

/** Checks the folder that holds the copies, or the place where it would be created. Leaves nothing behind. */
export async function checkCacheRoot({ cache }: Config): Promise<Check[]> {
  const { root, policy } = cache
  const folder = await findNearestExisting(root)
  const state = folder === root ? root : `${root} (will be made)`
  const disk = await readDiskUsage(folder)
  const kind = await readFileSystemKind(folder)
  return [
    ...(await checkWriting(folder, state)),
    kind.isNetwork
      ? warning(
          'cache file system',
          `${kind.name} may be a network file system: reading copies would cost what dsc should save`,
          'set cache.root to a folder on a local disk',
        )
      : ok('cache file system', kind.name),
    checkFreeSpace(disk, policy.minFreeBytes ?? 0),
    checkInodes(disk),
  ]
}

/** Fraction of free space below which a download would be short-lived. */
const MIN_FREE_RATIO = 0.05

/** Compares free space with the limits. */
export function checkFreeSpace(disk: DiskUsage, minFreeBytes: number): Check {
  const { freeBytes, capacityBytes } = disk
  const detail = `${formatByteSize(freeBytes)} of ${formatByteSize(capacityBytes)} free`
  const hint = 'run `dsc cleanup`, or set cache.root to a larger disk'
  if (freeBytes < minFreeBytes) {
    return warning('free space', `${detail}, less than cache.minFree ${formatByteSize(minFreeBytes)}`, hint)
  }
  return freeBytes < capacityBytes * MIN_FREE_RATIO
    ? warning('free space', detail, hint)
    : ok('free space', detail)
}

/** Judges free inodes; file systems that create them as needed report 0. */
export function checkInodes({ inodesTotal, inodesFree }: DiskUsage): Check {
  if (inodesTotal === 0) return ok('inodes', 'made as needed')
  const detail = `${inodesFree} of ${inodesTotal} free`
  return inodesFree < inodesTotal * MIN_FREE_RATIO
    ? warning('inodes', detail, 'each file of a dataset takes one: evict datasets of many small files')
    : ok('inodes', detail)
}

async function checkWriting(folder: string, state: string): Promise<Check[]> {
  let trial: string
  try {
    trial = await mkdtemp(join(folder, '.dsc-doctor-'))
  } catch (error) {
    return [
      failed(
        'cache root',
        `${state}: cannot write to ${folder}: ${errorCodeOf(error)}`,
        'make it writable for this user, or set cache.root to another folder',
      ),
    ]
  }
  try {
    const original = join(trial, 'original')
    await writeFile(original, 'dsc')
    return [
      ok('cache root', `${state} is writable`),
      await tryMaking('hard links', () => link(original, join(trial, 'link'))),
      await tryMaking('reflinks', () =>
        copyFile(original, join(trial, 'clone'), constants.COPYFILE_FICLONE_FORCE),
      ),
    ]
  } catch (error) {
    return [failed('cache root', `${state}: cannot write to ${folder}: ${errorCodeOf(error)}`)]
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}

/** Neither kind of link is required: without them, a new version of a dataset takes more space and time. */
async function tryMaking(name: string, make: () => Promise<void>): Promise<Check> {
  try {
    await make()
    return ok(name, 'yes')
  } catch (error) {
    return ok(name, `no (${errorCodeOf(error)})`)
  }
}
