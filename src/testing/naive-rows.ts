import assert from 'node:assert/strict'
import type { Copy, CopyUse } from '../model/copy.js'
import { isLeaseLive, type Lease, type LeaseRequest, type PlacedLease } from '../model/lease.js'
import type { CopyFilter } from '../records/contract/record-requests.js'

/** The copies and leases of a record in two arrays, and the effect of a single change on both. */
export class NaiveRows {
  copies: Copy[] = []
  leases: Lease[] = []

  placedLeases(): readonly PlacedLease[] {
    return this.leases.flatMap((lease) => {
      const copy = this.copies.find(({ copyId }) => copyId === lease.copyId)
      return copy ? [{ ...lease, dataset: copy.dataset, node: copy.node }] : []
    })
  }

  uses(filter: CopyFilter, nowMs: number): readonly CopyUse[] {
    const live = this.leases.filter((lease) => isLeaseLive(lease, nowMs))
    return this.copies
      .filter((copy) => isMatch(copy, filter))
      .map((copy) => {
        const own = live.filter(({ copyId }) => copyId === copy.copyId)
        const stagers = own.filter(({ purpose }) => purpose === 'stage').length
        return { ...copy, referenceCount: own.length - stagers, isBeingStaged: stagers > 0 }
      })
  }

  renew(leaseId: string, expiresAtMs: number | null, nowMs: number): boolean {
    const isThere = this.leases.some((lease) => lease.leaseId === leaseId)
    this.leases = this.leases.map((lease) =>
      lease.leaseId === leaseId ? { ...lease, expiresAtMs, renewedAtMs: nowMs } : lease,
    )
    return isThere
  }

  protected copy(copyId: string): Copy {
    const copy = this.copies.find((candidate) => candidate.copyId === copyId)
    assert.ok(copy, `a lease names copy ${copyId}, which does not exist`)
    return copy
  }

  protected staged(stage: { readonly copyId: string; readonly stageLeaseId: string }): Copy | undefined {
    const isHeld = this.leases.some(
      ({ leaseId, copyId }) => leaseId === stage.stageLeaseId && copyId === stage.copyId,
    )
    return this.copies.find((copy) => copy.copyId === stage.copyId && isUnderWay(copy) && isHeld)
  }

  protected grant(
    copy: Copy,
    purpose: Lease['purpose'],
    request: LeaseRequest,
    nowMs: number,
    newId: string,
  ): string {
    const { task, holder, expiresAtMs } = request
    const wanted = { copyId: copy.copyId, purpose, task, holder }
    const known = this.leases.find((lease) => isSameHolder(lease, wanted))
    if (known) this.renew(known.leaseId, expiresAtMs, nowMs)
    else this.leases.push({ ...wanted, leaseId: newId, createdAtMs: nowMs, renewedAtMs: nowMs, expiresAtMs })
    if (purpose === 'use') this.change(copy.copyId, { lastTask: task, lastUsedAtMs: nowMs })
    return known?.leaseId ?? newId
  }

  protected evict(copyId: string): void {
    this.change(copyId, { state: 'evicting' })
    this.endLeases((lease) => lease.copyId === copyId)
  }

  protected remove(copyId: string): void {
    this.copies = this.copies.filter((copy) => copy.copyId !== copyId)
    this.endLeases((lease) => lease.copyId === copyId)
  }

  protected change(copyId: string, changes: Partial<Copy>): void {
    this.copies = this.copies.map((copy) => (copy.copyId === copyId ? { ...copy, ...changes } : copy))
  }

  protected endLeases(isEnding: (lease: Lease) => boolean): number {
    const before = this.leases.length
    this.leases = this.leases.filter((lease) => !isEnding(lease))
    return before - this.leases.length
  }
}

/** Distinguishes the leases of one copy: it differs for every two of them. */
export function holderKey(lease: Pick<Lease, 'purpose' | 'task' | 'holder'>): string {
  return JSON.stringify([lease.purpose, lease.task, lease.holder])
}

/** Whether two leases are the same: the same holder of the same copy. */
export function isSameHolder(
  a: Pick<Lease, 'copyId' | 'purpose' | 'task' | 'holder'>,
  b: Pick<Lease, 'copyId' | 'purpose' | 'task' | 'holder'>,
): boolean {
  return a.copyId === b.copyId && holderKey(a) === holderKey(b)
}

/** Whether a stager may be at work on the copy. */
export function isUnderWay(copy: Copy): boolean {
  return copy.state === 'reserved' || copy.state === 'staging'
}

/** Whether the copy matches the filter. */
export function isMatch(copy: Copy, filter: CopyFilter): boolean {
  return (
    (filter.dataset ?? copy.dataset) === copy.dataset &&
    (filter.node ?? copy.node) === copy.node &&
    (filter.copyId ?? copy.copyId) === copy.copyId &&
    (filter.states ?? [copy.state]).includes(copy.state)
  )
}
