import { identifyProcess } from '../platform/processes.js'
import type { RecordStore } from '../records/record-store.js'

/** A reader that has been silent for so long no longer keeps the peer's copy. */
const TRANSFER_LEASE_MS = 120_000
const RENEW_INTERVAL_MS = 20_000

/** Leases on peers' copies while they are read; they count as references there. */
export interface TransferLeases {
  /** Takes (once) a lease on the copy. False: it is no longer ready. */
  take(copyId: string): Promise<boolean>
  /** Ends all of them. */
  release(): Promise<void>
}

/** Keeps transfer leases for `task` and renews them until released. */
export function keepTransferLeases(record: RecordStore, task: string): TransferLeases {
  const leases = new Map<string, Promise<string | undefined>>()
  const expiry = () => record.nowMs() + TRANSFER_LEASE_MS
  const timer = setInterval(async () => {
    for (const pending of leases.values()) {
      const leaseId = await pending.catch(() => undefined)
      // A record that cannot be reached now may be back before the lease ends.
      if (leaseId) await record.renewLease(leaseId, expiry(), record.nowMs()).catch(() => false)
    }
  }, RENEW_INTERVAL_MS)
  timer.unref()
  return {
    async take(copyId) {
      let lease = leases.get(copyId)
      if (lease === undefined) {
        const holder = identifyProcess(process.pid) ?? { kind: 'ttl' as const }
        lease = record.leaseCopy(copyId, 'transfer', { task, holder, expiresAtMs: expiry() }, record.nowMs())
        leases.set(copyId, lease)
      }
      return (await lease) !== undefined
    },
    async release() {
      clearInterval(timer)
      for (const pending of leases.values()) {
        const leaseId = await pending.catch(() => undefined)
        if (leaseId) await record.releaseUses({ leaseId }, record.nowMs())
      }
      leases.clear()
    },
  }
}
