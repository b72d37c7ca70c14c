import { lstatSync } from 'node:fs'
import { isDscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { unlessCode } from '../../failure/unless-code.js'
import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { onHeldPath } from '../../platform/held-path.js'
import type { Cache } from '../cache.js'
import { copyDirectory, filesDirectory, hubDirectory } from '../cache-layout.js'
import { layHubCache } from '../download/hub-layout.js'
import { discardDirectory } from '../eviction/finish-evictions.js'
import { holdCopyDirectory } from '../held-copy.js'
import { isUnchanged, markUntouched } from '../untouched-copy.js'
import type { Damage } from './verify-copy.js'
import { repairOne } from './verify-dataset.js'

/** Number of files fetched at once. */
const MENDED_AT_ONCE = 8
/** Number of files between two checks for signals. */
const BATCH_FILES = 1000

/** News, for those who watch, about a ready copy from which files were removed. */
export interface HealProgress {
  readonly step: 'healing'
  /** In words: what is missing, and what dsc does about it. */
  readonly problem: string
}

interface HealOptions {
  readonly signal: AbortSignal
  readonly onProgress?: ((progress: HealProgress) => void) | undefined
}

/**
 * Repairs a ready copy from which something was removed, by a cleaner of temporary files or by hand; the caller leases
 * it. If some files are left, jobs may be reading them, so the missing ones are fetched into place. Otherwise the copy
 * is forgotten and its folder discarded. True: the copy is complete.
 */
export async function healCopy(cache: Cache, copy: Copy, options: HealOptions): Promise<boolean> {
  const { missing, files } = await findMissing(cache, copy, options.signal)
  if (files > 0 && missing.length === 0) {
    if (copy.origin !== 'local') await layViewAgain(cache, copy, options)
    return true
  }
  const problem = `${copy.path}: ${missing.length} of ${formatCount(files, 'file')} ${missing.length === 1 ? 'was' : 'were'} removed by somebody`
  if (files > missing.length && copy.source !== null) {
    options.onProgress?.({ step: 'healing', problem: `${problem}; fetching what is missing` })
    if (await mend(cache, copy, { missing, problem, signal: options.signal })) return true
  }
  options.onProgress?.({ step: 'healing', problem: `${problem}; the dataset is staged again` })
  if ((await cache.record.forgetCopies([copy.copyId], problem, cache.nowMs())) > 0 && copy.version !== null)
    await discardDirectory(cache, copyDirectory(cache.root, { ...copy, version: copy.version }))
  return false
}

/** A client that was not offline may have written to the view of a hub repository. */
async function layViewAgain(cache: Cache, copy: Copy, { onProgress }: HealOptions): Promise<void> {
  if (!isUnchanged(copy.directory, hubDirectory(copy.directory))) {
    using directory = holdCopyDirectory(cache, copy)
    using manifest = Manifest.openPublished(directory.path)
    await layHubCache(directory.path, manifest)
    const problem = `${hubDirectory(copy.directory)}: somebody wrote into it; it is as it was staged again`
    onProgress?.({ step: 'healing', problem })
  }
  markUntouched(copy.directory)
}

/** Files of the manifest that are missing or have another size. */
async function findMissing(
  cache: Cache,
  copy: Copy,
  signal: AbortSignal,
): Promise<{ readonly missing: readonly Damage[]; readonly files: number }> {
  const missing: Damage[] = []
  let files = 0
  try {
    using directory = holdCopyDirectory(cache, copy)
    using manifest = Manifest.findPublished(directory.path)
    for (const { key, sizeBytes } of manifest?.entries('kept') ?? []) {
      const found = statHeld(`${filesDirectory(directory.path)}/${key}`)
      if (!found?.isFile() || found.size !== sizeBytes)
        missing.push({ path: key, problem: 'missing', expected: `${sizeBytes} bytes`, found: 'nothing' })
      files += 1
      if (files % BATCH_FILES > 0) continue
      await new Promise(setImmediate)
      throwIfStopped(signal)
    }
  } catch (error) {
    if (!isDscError(error, 'COPY_DAMAGED')) throw error
    return { missing: [], files: 0 }
  }
  return { missing, files }
}

function statHeld(path: string) {
  const look = () => onHeldPath(path, (held) => lstatSync(held, { throwIfNoEntry: false }))
  return unlessCode(['ENOENT', 'CACHE_ROOT_INVALID'], look)
}

/** False: the source no longer has these bytes. */
async function mend(
  cache: Cache,
  copy: Copy,
  found: { readonly missing: readonly Damage[]; readonly problem: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const { missing, problem, signal } = found
  const { copyId, dataset } = copy
  const about = { node: cache.node, dataset, copyId, task: 'dsc prepare' }
  const detail = { damages: missing.slice(0, 100) }
  await cache.record.addEvent({ ...about, atMs: cache.nowMs(), kind: 'damaged', reason: problem, detail })
  const shares = Array.from({ length: MENDED_AT_ONCE }, (_, share) =>
    missing.filter((_, at) => at % MENDED_AT_ONCE === share),
  )
  const repairs = await Promise.all(
    shares.filter(({ length }) => length > 0).map((damages) => repairOne(cache, copy, { damages, signal })),
  )
  if (repairs.some(({ failures }) => failures.length > 0)) return false
  const repairedFiles = repairs.reduce((sum, repair) => sum + repair.repairedFiles, 0)
  const reason = `fetched ${formatCount(repairedFiles, 'file')} again`
  await cache.record.addEvent({ ...about, atMs: cache.nowMs(), kind: 'repaired', reason, detail: {} })
  return true
}
