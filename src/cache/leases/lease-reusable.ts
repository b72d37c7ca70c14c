import { type Copy, formatStripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { findHubUrl } from '../../model/source-url.js'
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
  const copies = await record.listCopies({ node, states: ['ready'] }, nowMs())
  const others = copies
    .filter((copy) => copy.dataset !== dataset && copy.source !== null && isForSame(copy))
    .toSorted(byAge)
  const isOfSource = ({ source: known }: Copy) =>
    known !== null && bare(known) === bare(source) && known.endpoint === source.endpoint
  const same = others.filter(isOfSource).slice(0, MAX_SAME_SOURCE)
  if (!listsChecksums(source)) return same
  const further = others.filter((copy) => !isOfSource(copy) && listsChecksums(copy.source!))
  return [...same, ...further.slice(0, MAX_OTHERS)]
}

/** `data` and `data/` are one folder. */
function bare({ source }: Dataset): string {
  return source.replace(/\/+$/, '')
}

/** Whether this kind of source gives checksums of its objects before they are read. */
function listsChecksums({ source }: { readonly source: string }): boolean {
  return findHubUrl(source) !== undefined
}

/** Newest first. */
function byAge(a: Copy, b: Copy): number {
  return (b.readyAtMs ?? 0) - (a.readyAtMs ?? 0)
}
