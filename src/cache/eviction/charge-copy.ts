import type { Copy } from '../../model/copy.js'
import type { Cache } from '../cache.js'
import { settleAdmission } from './settle-admission.js'

/** Space that a copy needs in addition to its files. */
interface ExtraCharge {
  readonly bytes: number
  readonly inodes: number
}

/**
 * Makes room on this node for additions beside the files of a ready, leased copy, and charges the copy for them.
 * Rejects with QUOTA_EXCEEDED if no permitted eviction is enough; then it deleted nothing for this request. False: the
 * copy is not ready any more.
 */
export async function chargeCopy(cache: Cache, copy: Copy, extra: ExtraCharge): Promise<boolean> {
  const { copyId, dataset } = copy
  const [now] = await cache.record.listCopies({ copyId }, cache.nowMs())
  if (!now) return false
  const charge = {
    copyId,
    chargedBytes: now.chargedBytes + extra.bytes,
    chargedInodes: now.chargedInodes + extra.inodes,
    task: now.lastTask,
  }
  const settled = await settleAdmission(cache, {
    dataset,
    request: { datasets: 0, ...extra },
    requestCopyId: '', // the copy's own charge is already counted
    parties: now.parties ?? [],
    ask: (decide) => cache.record.chargeCopy(charge, decide, cache.nowMs()),
  })
  return settled.outcome === 'admit'
}

/** Sets a ready copy's charge to its measured disk usage, which needs no more room. */
export async function chargeMeasured(
  cache: Cache,
  copyId: string,
  measured: { readonly diskBytes: number; readonly inodes: number },
): Promise<void> {
  const charge = { copyId, chargedBytes: measured.diskBytes, chargedInodes: measured.inodes, task: null }
  const plan = { victims: [], freedBytes: 0, shortfalls: [], evictableBytes: 0, evictableCopies: 0 }
  await cache.record.chargeCopy(charge, () => ({ outcome: 'admit', plan }), cache.nowMs())
}
