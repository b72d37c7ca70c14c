import { holdByThisProcess } from '../../platform/processes.js'
import type { RecordStore } from '../../records/contract/record-store.js'

/** Lifetime of a lease on a peer's copy after its reader's last renewal. */
const TRANSFER_LEASE_MS = 120_000
const RENEW_INTERVAL_MS = 20_000

/** One task's leases on copies while it reads them; they count as references and renew themselves until released. */
export class TransferLeases {
  readonly #record: RecordStore
  readonly #task: string
  readonly #leases = new Map<string, Promise<string | undefined>>()
  readonly #timer: NodeJS.Timeout

  constructor(record: RecordStore, task: string) {
    this.#record = record
    this.#task = task
    this.#timer = setInterval(() => void this.#renew(), RENEW_INTERVAL_MS)
    this.#timer.unref()
  }

  /** Leases the copy, once. False: it is no longer ready. */
  async take(copyId: string): Promise<boolean> {
    let lease = this.#leases.get(copyId)
    if (lease === undefined) {
      const request = { task: this.#task, holder: holdByThisProcess(), expiresAtMs: this.#expiryMs() }
      lease = this.#record.leaseCopy({ copyId, purpose: 'transfer', lease: request }, this.#record.nowMs())
      this.#leases.set(copyId, lease)
    }
    return (await lease) !== undefined
  }

  /** Ends all leases. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    for (const pending of this.#leases.values()) {
      const leaseId = await pending.catch(() => undefined)
      if (leaseId) await this.#record.releaseUses({ leaseId }, this.#record.nowMs())
    }
    this.#leases.clear()
  }

  async #renew(): Promise<void> {
    for (const pending of this.#leases.values()) {
      const leaseId = await pending.catch(() => undefined)
      // An unreachable record may be back before the lease ends.
      if (leaseId)
        await this.#record.renewLease(leaseId, this.#expiryMs(), this.#record.nowMs()).catch(() => false)
    }
  }

  #expiryMs(): number {
    return this.#record.nowMs() + TRANSFER_LEASE_MS
  }
}
