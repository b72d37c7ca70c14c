import type { Copy } from '../../model/copy.js'
import type { Cache } from '../cache.js'
import { TransferLeases } from './transfer-lease.js'

/** A ready copy that stays until it is released. */
interface PreviousCopyLease {
  readonly directory: string
  /** May be called twice. */
  readonly release: () => Promise<void>
}

/**
 * A ready copy of the dataset here, from which unchanged objects are taken: of this version (a stripe of it), else the
 * newest; undefined when there is none.
 * Its lease counts as a reference: nothing may evict the copy while its files are being linked.
 */
export async function leasePrevious(
  cache: Cache,
  dataset: string,
  version: string,
): Promise<PreviousCopyLease | undefined> {
  const { record, node } = cache
  const copies = await record.listCopies({ dataset, node, states: ['ready'] }, cache.nowMs())
  const isSame = (copy: Copy) => Number(copy.version === version)
  const [newest] = copies.toSorted((a, b) => isSame(b) - isSame(a) || (b.readyAtMs ?? 0) - (a.readyAtMs ?? 0))
  if (newest === undefined) return undefined
  const leases = new TransferLeases(record, `dsc prepare:${process.pid}`)
  if (await leases.take(newest.copyId))
    return { directory: newest.directory, release: () => leases.release() }
  await leases.release()
  return undefined
}
