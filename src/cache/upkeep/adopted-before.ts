import { realpath } from 'node:fs/promises'
import { DscError } from '../../failure/dsc-error.js'
import type { CopyLock, CopyUse } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { Cache } from '../cache.js'
import { CopyInUse } from '../eviction/evict-copies.js'
import { describeHeld } from '../eviction/explain-refusal.js'
import { discardDirectory, publishedDirectoryOf } from '../eviction/finish-evictions.js'
import { expireDeadLeases } from '../leases/expire-leases.js'
import { ADOPTION } from './adopted-copy.js'

/** Whether the source is the folder itself, or lies in it or around it: deleting the folder would delete the source. */
export async function isOwnSource(folder: string, { source }: Pick<Dataset, 'source'>): Promise<boolean> {
  const url = parseSourceUrl(source)
  if (url.scheme !== 'file') return false
  const directory = await realpath(url.directory).catch(() => undefined)
  return directory !== undefined && areNested(directory, folder)
}

/**
 * Rejects with USAGE if the folder and the cache lie in each other. If its files may be deleted some day, also rejects
 * if the folder and an adopted folder lie in each other: one would be deleted with the other. `folder` contains no
 * links.
 */
export async function requireApart(
  cache: Cache,
  { folder, isDeletable }: { readonly folder: string; readonly isDeletable: boolean },
): Promise<void> {
  const root = await realpath(cache.root)
  if (areNested(root, folder))
    throw new DscError('USAGE', `${folder} and the cache ${root} cannot lie in each other`, {
      hint: 'adopt folders outside of the cache',
    })
  const nested = (await listAdopted(cache, folder)).find(
    ({ path, source }) => path !== folder && (isDeletable || source !== null),
  )
  if (nested === undefined) return
  throw new DscError(
    'USAGE',
    `${folder} and ${nested.path}, adopted as ${nested.dataset}, lie in each other: deleting one would delete both`,
    { hint: `dsc status ${nested.dataset}` },
  )
}

/** The copies that this very folder already is. Rejects with COPY_IN_USE while one of them is leased. */
export async function findAdoptedBefore(cache: Cache, folder: string): Promise<readonly CopyUse[]> {
  await expireDeadLeases(cache, { asksSlurm: true })
  const before = (await listAdopted(cache, folder)).filter(({ path }) => path === folder)
  const used = before.find(({ referenceCount }) => referenceCount > 0)
  if (used === undefined) return before
  const leases = await cache.record.listLeases({ copyId: used.copyId })
  throw new CopyInUse(used, `${folder} is in use: ${describeHeld(used, leases, cache.nowMs())}`)
}

/** Forgets copies whose folder has become another copy; deletes only their manifests. */
export async function forgetAdoptedBefore(
  cache: Cache,
  before: readonly CopyUse[],
  reason: string,
): Promise<void> {
  for (const copy of before) {
    if ((await cache.record.forgetCopies([copy.copyId], reason, cache.nowMs())) === 0) continue
    const published = publishedDirectoryOf(cache, copy)
    if (published !== undefined) await discardDirectory(cache, published)
  }
}

/** A lock that an operator set on an earlier copy of the folder; adoption sets its own locks again. */
export function findLock(before: readonly CopyUse[]): CopyLock | null {
  return before.find(({ lock }) => lock !== null && lock.by !== ADOPTION)?.lock ?? null
}

async function listAdopted(cache: Cache, folder: string): Promise<readonly CopyUse[]> {
  const ready = await cache.record.listCopies({ node: cache.node, states: ['ready'] }, cache.nowMs())
  return ready.filter(({ origin, path }) => origin === 'local' && areNested(path, folder))
}

/** Whether two paths are the same, or one lies below the other. */
function areNested(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => (path.endsWith('/') ? path : `${path}/`)) as [string, string]
  return a.startsWith(b) || b.startsWith(a)
}
