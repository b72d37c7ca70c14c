import { type Copy, formatStripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { findHubUrl } from '../../model/source-url.js'
import type { CopyFilter } from '../../records/contract/record-requests.js'
import type { Cache } from '../cache.js'
import { findReaders, findReadersOf } from '../find-readers.js'
import { TransferLeases } from './transfer-lease.js'

/** Ready copies that stay until they are released. */
interface ReusableCopies {
  readonly directories: readonly string[]
  /** May be called twice. */
  readonly release: () => Promise<void>
}

/**
 * Maximum number of other repositories to compare with: most share nothing, and each costs a look into its manifest.
 */
const MAX_OTHERS = 16
/** Maximum number of copies of the same source under other names, with other filters or versions. */
const MAX_SAME_SOURCE = 4
/** Of more copies of a source, or of hubs, than this, the others are read only if too few of these can be used. */
const MANY_COPIES = 200

/**
 * Leases ready copies on this node from which unchanged objects are taken: one of the dataset (of this version, such as
 * a stripe of it; else the newest), those of the same source under other names, and copies of other datasets whose
 * sources list checksums, newest first, so that equal contents are found under any name. The leases count as references: dsc never evicts a copy while its files are
 * being linked.
 */
export async function leaseReusable(
  cache: Cache,
  wanted: {
    readonly dataset: string
    readonly version: string
    readonly source: Dataset
    /** Ids of a dataset's copies found damaged: nothing is taken from them. */
    readonly findDamaged: (dataset: string) => Promise<ReadonlySet<string>>
  },
): Promise<ReusableCopies> {
  const { record, node } = cache
  const { dataset, version, findDamaged } = wanted
  const ready = await record.listCopies({ dataset, node, states: ['ready'] }, cache.nowMs())
  const own = await onlySound(ready, findDamaged)
  const isSame = (copy: Copy) => Number(copy.version === version)
  const [previous] = own.toSorted((a, b) => isSame(b) - isSame(a) || byAge(a, b))
  const others = await onlySound(await listOthers(cache, wanted), findDamaged)
  const leases = new TransferLeases(record, `dsc prepare:${process.pid}`)
  const directories: string[] = []
  for (const copy of previous ? [previous, ...others] : others)
    if (await leases.take(copy.copyId)) directories.push(copy.directory)
  if (directories.length === 0) await leases.release()
  return { directories, release: () => leases.release() }
}

async function onlySound(
  copies: readonly Copy[],
  findDamaged: (dataset: string) => Promise<ReadonlySet<string>>,
): Promise<readonly Copy[]> {
  const found = await Promise.all([...new Set(copies.map(({ dataset }) => dataset))].map(findDamaged))
  const damaged = new Set(found.flatMap((ids) => [...ids]))
  return copies.filter(({ copyId }) => !damaged.has(copyId))
}

/** The newest ready copy on this node of a dataset, or of the same stripe of it, which stays until it is released. */
export async function leaseNewest(
  { record, node, nowMs }: Cache,
  { dataset, stripe }: Pick<Copy, 'dataset' | 'stripe'>,
): Promise<{ readonly directory: string; readonly release: () => Promise<void> } | undefined> {
  const ready = await record.listCopies({ dataset, node, states: ['ready'] }, nowMs())
  const [newest] = ready.filter((copy) => nameOf(copy.stripe) === nameOf(stripe)).toSorted(byAge)
  if (newest === undefined) return undefined
  const leases = new TransferLeases(record, `dsc prepare:${process.pid}`)
  const isTaken = await leases.take(newest.copyId)
  const release = () => leases.release()
  if (isTaken) return { directory: newest.directory, release }
  await release()
  return undefined
}

function nameOf(stripe: Copy['stripe']): string {
  return stripe === undefined ? '' : formatStripe(stripe)
}

async function listOthers(
  cache: Cache,
  { dataset, source }: { readonly dataset: string; readonly source: Dataset },
): Promise<readonly Copy[]> {
  const { record, node, nowMs } = cache
  const readers = JSON.stringify(findReaders(cache, source))
  // A listing that everybody may see does not make bytes theirs that only some may read.
  const isForSame = (copy: Copy) => [undefined, readers].includes(JSON.stringify(findReadersOf(cache, copy)))
  const listNewest = async (
    filter: Pick<CopyFilter, 'sourceUrl' | 'isOfHub'>,
    most: number,
    isWanted: (copy: Copy) => boolean,
  ): Promise<readonly Copy[]> => {
    const asked = { ...filter, node, states: ['ready'], isNewestFirst: true } as const
    for (const limit of [MANY_COPIES, Number.MAX_SAFE_INTEGER]) {
      const copies = await record.listCopies({ ...asked, limit }, nowMs())
      const found = copies.filter((copy) => copy.dataset !== dataset && isForSame(copy) && isWanted(copy))
      if (found.length >= most || copies.length < limit) return found.slice(0, most)
    }
    return []
  }
  const sourceUrl = source.source.replace(/\/+$/, '') // `data` and `data/` are one folder
  const isAtEndpoint = (copy: Copy) => copy.source?.endpoint === source.endpoint
  const same = await listNewest({ sourceUrl }, MAX_SAME_SOURCE, isAtEndpoint)
  if (!findHubUrl(source.source)) return same
  // Hubs give checksums of their objects before they are read.
  const known = new Set(same.map(({ copyId }) => copyId))
  return [...same, ...(await listNewest({ isOfHub: true }, MAX_OTHERS, ({ copyId }) => !known.has(copyId)))]
}

/** Newest first. */
function byAge(a: Copy, b: Copy): number {
  return (b.readyAtMs ?? 0) - (a.readyAtMs ?? 0)
}
