import type { Cache } from '../../cache/cache.js'
import type { Copy } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import { answerInTime } from './answer-in-time.js'

interface Hold {
  readonly leaseId: string
  expiresAtMs: number
  readers: number
  /** Undefined while no renewal is under way. */
  renewing?: Promise<void> | undefined
}

/** Protects copies that S3 clients read from eviction: by leases that outlive the last read by `keepMs`. */
export class GatewayHolds {
  readonly #cache: Cache
  readonly #keepMs: number
  readonly #holds = new Map<string, Hold>()
  /** Holds that are being taken: a client may open a hundred connections at once. */
  readonly #beginning = new Map<string, Promise<Hold | undefined>>()

  constructor(options: { readonly cache: Cache; readonly keepMs: number }) {
    this.#cache = options.cache
    this.#keepMs = options.keepMs
  }

  /** A lease that starts now. */
  nextLease(): LeaseRequest & { readonly expiresAtMs: number } {
    const expiresAtMs = this.#cache.nowMs() + this.#keepMs
    return { task: `gateway@${this.#cache.node}`, holder: { kind: 'ttl' }, expiresAtMs }
  }

  has(copyId: string): boolean {
    return (this.#holds.get(copyId)?.expiresAtMs ?? 0) > this.#cache.nowMs()
  }

  /** Whether the hold on a copy lasts long enough that it needs no renewal yet. */
  isFresh(copyId: string): boolean {
    const hold = this.#holds.get(copyId)
    return hold !== undefined && hold.expiresAtMs - this.#cache.nowMs() >= this.#keepMs / 2
  }

  /** Adds a lease that was taken elsewhere. */
  take(copy: Copy, lease: { readonly leaseId: string; readonly expiresAtMs: number }): void {
    this.#holds.set(copy.copyId, { ...lease, readers: 0 })
  }

  /** Holds a copy while `read` runs. `isGone`: it was evicted this moment and could not be held. */
  async use<Result>(
    copy: Copy,
    read: () => Promise<Result>,
  ): Promise<{ readonly result: Result; readonly isGone: boolean }> {
    const hold = await this.#holdOf(copy)
    if (hold === undefined) return { result: await read(), isGone: copy.state === 'ready' }
    hold.readers += 1
    try {
      return { result: await read(), isGone: false }
    } finally {
      hold.readers -= 1
    }
  }

  /** Renews the holds of copies that are being read, and forgets the expired ones. */
  async renew(): Promise<void> {
    const nowMs = this.#cache.nowMs()
    for (const [copyId, hold] of this.#holds) {
      if (hold.readers > 0) await this.#renew(hold)
      else if (hold.expiresAtMs < nowMs) this.#holds.delete(copyId)
    }
  }

  async #holdOf(copy: Copy): Promise<Hold | undefined> {
    const known = this.#holds.get(copy.copyId)
    const nowMs = this.#cache.nowMs()
    if (known && known.expiresAtMs > nowMs) {
      if (known.expiresAtMs - nowMs < this.#keepMs / 2)
        await answerInTime(this.#renew(known), { answer: undefined })
      return known
    }
    if (copy.state !== 'ready') return undefined // held by its stager, and by the lease that waits for it
    const begun =
      this.#beginning.get(copy.copyId) ??
      this.#lease(copy, nowMs).finally(() => this.#beginning.delete(copy.copyId))
    this.#beginning.set(copy.copyId, begun)
    return answerInTime(begun, { answer: undefined })
  }

  async #lease({ copyId }: Copy, nowMs: number): Promise<Hold | undefined> {
    const lease = this.nextLease()
    const leaseId = await this.#cache.record.leaseCopy({ copyId, purpose: 'use', lease }, nowMs)
    if (leaseId === undefined) return undefined
    const hold = { leaseId, expiresAtMs: lease.expiresAtMs, readers: 0 }
    this.#holds.set(copyId, hold)
    return hold
  }

  /** Asks the record once at a time. A record that is away costs nothing while the hold lasts. */
  #renew(hold: Hold): Promise<void> {
    hold.renewing ??= this.#askToRenew(hold).finally(() => {
      hold.renewing = undefined
    })
    return hold.renewing
  }

  async #askToRenew(hold: Hold): Promise<void> {
    const nowMs = this.#cache.nowMs()
    const expiresAtMs = nowMs + this.#keepMs
    const isRenewed = await this.#cache.record
      .renewLease(hold.leaseId, expiresAtMs, nowMs)
      .catch(() => undefined)
    if (isRenewed === true) hold.expiresAtMs = expiresAtMs
    if (isRenewed === false) hold.expiresAtMs = 0
  }
}
