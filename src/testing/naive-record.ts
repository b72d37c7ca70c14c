import type { Copy, CopyLock, CopyUse } from '../model/copy.js'
import { isLeaseLive, type Lease, type LeaseHolder, type LeaseRequest } from '../model/lease.js'
import { newCopy } from '../model/new-copy.js'
import type { Admission } from '../policy/plan-admission.js'
import type { EvictionPlan } from '../policy/plan-eviction.js'
import type { Victim } from '../policy/take-by-share.js'
import type {
  AdmitRequest,
  ChargeRequest,
  CopyFilter,
  DeadLease,
  EndedStaging,
  Joined,
  JoinRequest,
  PublishedCopy,
  ReleaseFilter,
  StagingProgress,
  UseRequest,
} from '../records/contract/record-requests.js'
import { holderKey, isMatch, isSameHolder, isUnderWay, NaiveRows } from './naive-rows.js'

/** Ids that the real record generated; the naive one reuses them. */
export interface MadeIds {
  readonly copyId: string
  readonly leaseId: string
  readonly stageLeaseId: string
}

/**
 * The meaning of the record port, in loops over two arrays: no indexes, no transactions, no SQL. Tests compare the real
 * adapters with it step by step.
 */
export class NaiveRecord extends NaiveRows {
  leaseReady(request: UseRequest, nowMs: number, newId: string) {
    const ready = this.copies
      .filter(
        ({ dataset, node, state }) =>
          dataset === request.dataset && node === request.node && state === 'ready',
      )
      .toSorted((a, b) => b.readyAtMs! - a.readyAtMs!)[0]
    return ready && this.leaseCopy(ready.copyId, request.purpose ?? 'use', request.lease, nowMs, newId)
  }

  leaseCopy(copyId: string, purpose: Lease['purpose'], request: LeaseRequest, nowMs: number, newId: string) {
    const copy = this.copies.find((candidate) => candidate.copyId === copyId && candidate.state === 'ready')
    return copy && this.grant(copy, purpose, request, nowMs, newId)
  }

  join(request: JoinRequest, nowMs: number, made: MadeIds): Joined['outcome'] {
    if (!request.isRefresh && this.leaseReady(request, nowMs, made.leaseId)) return 'ready'
    const { dataset, node, lease } = request
    const found = this.copies.find(
      (copy) => copy.dataset === dataset && copy.node === node && isUnderWay(copy),
    )
    const stageLease = this.leases.find(
      ({ copyId, purpose }) => copyId === found?.copyId && purpose === 'stage',
    )
    if (found && stageLease && isLeaseLive(stageLease, nowMs)) {
      this.grant(found, 'use', lease, nowMs, made.leaseId)
      return 'wait'
    }
    if (found && stageLease) this.evict(found.copyId)
    const copy: Copy = found && !stageLease ? found : reserved(request, made.copyId, nowMs)
    if (copy !== found) this.copies.push(copy)
    this.grant(copy, 'use', lease, nowMs, made.leaseId)
    this.grant(copy, 'stage', request.stager, nowMs, made.stageLeaseId)
    return 'stage'
  }

  admit(
    request: AdmitRequest,
    decide: (copies: readonly CopyUse[]) => Admission,
    nowMs: number,
    newLeaseIds: ReadonlyMap<string, string>,
  ): Admission['outcome'] | 'lost' | 'same-version' {
    const copy = this.staged(request)
    if (!copy) return 'lost'
    const twin = this.copies.find(
      ({ dataset, node, version, state }) =>
        dataset === copy.dataset && node === copy.node && version === request.version && state === 'ready',
    )
    if (twin) {
      const uses = this.leases.filter(({ copyId, purpose }) => copyId === copy.copyId && purpose !== 'stage')
      for (const use of uses)
        this.grant(twin, use.purpose, use, nowMs, newLeaseIds.get(holderKey(use)) ?? 'not in the record')
      const isUsed = uses.some(({ purpose }) => purpose === 'use')
      this.change(twin.copyId, { source: copy.source, ...(isUsed ? { lastTask: copy.lastTask } : {}) })
      this.remove(copy.copyId)
      return 'same-version'
    }
    const admission = decide(this.uses({ node: copy.node }, nowMs))
    if (admission.outcome !== 'admit') return admission.outcome
    for (const { copy: victim } of admission.plan.victims) this.evict(victim.copyId)
    const { version, files, contentBytes, chargedBytes, chargedInodes } = request
    this.change(copy.copyId, { state: 'staging', version, files, contentBytes, chargedBytes, chargedInodes })
    return 'admit'
  }

  charge(
    request: ChargeRequest,
    decide: (copies: readonly CopyUse[]) => Admission,
    nowMs: number,
  ): Admission['outcome'] | 'gone' {
    const copy = this.copies.find(({ copyId, state }) => copyId === request.copyId && state === 'ready')
    if (!copy) return 'gone'
    const admission = decide(this.uses({ node: copy.node }, nowMs))
    if (admission.outcome !== 'admit') return admission.outcome
    for (const { copy: victim } of admission.plan.victims) this.evict(victim.copyId)
    const { chargedBytes, chargedInodes } = request
    if (this.copies.some(({ copyId }) => copyId === copy.copyId))
      this.change(copy.copyId, { chargedBytes, chargedInodes, writtenBytes: chargedBytes })
    return 'admit'
  }

  progress(progress: StagingProgress, nowMs: number): boolean {
    const lease = this.leases.find(
      ({ leaseId, copyId }) => leaseId === progress.stageLeaseId && copyId === progress.copyId,
    )
    if (!lease) return false
    this.renew(lease.leaseId, progress.expiresAtMs, nowMs)
    this.change(progress.copyId, { writtenBytes: progress.writtenBytes })
    return true
  }

  markReady(published: PublishedCopy, nowMs: number): boolean {
    const copy = this.staged(published)
    if (copy?.state !== 'staging') return false
    const { directory, path, chargedBytes, chargedInodes } = published
    this.change(copy.copyId, {
      state: 'ready',
      directory,
      path,
      chargedBytes,
      chargedInodes,
      writtenBytes: chargedBytes,
      lastUsedAtMs: nowMs,
      readyAtMs: nowMs,
    })
    this.endLeases(({ leaseId }) => leaseId === published.stageLeaseId)
    return true
  }

  endStaging(ended: EndedStaging): void {
    const copy = this.staged(ended)
    this.endLeases(({ leaseId }) => leaseId === ended.useLeaseId || leaseId === ended.stageLeaseId)
    if (copy && ended.isForgotten) this.remove(copy.copyId)
  }

  beginEviction(
    node: string,
    decide: (copies: readonly CopyUse[]) => EvictionPlan,
    nowMs: number,
  ): readonly Victim[] {
    const { victims } = decide(this.uses({ node }, nowMs))
    for (const { copy } of victims) this.evict(copy.copyId)
    return victims
  }

  finishEviction(copyId: string): boolean {
    const isEvicting = this.copies.some((copy) => copy.copyId === copyId && copy.state === 'evicting')
    if (isEvicting) this.remove(copyId)
    return isEvicting
  }

  release(filter: ReleaseFilter): number {
    return this.endLeases((lease) => {
      const copy = this.copy(lease.copyId)
      return (
        lease.purpose !== 'stage' &&
        [filter.task ?? lease.task, filter.leaseId ?? lease.leaseId].join() ===
          [lease.task, lease.leaseId].join() &&
        isMatch(copy, filter)
      )
    })
  }

  handOver(leaseId: string, holder: LeaseHolder, nowMs: number): boolean {
    const lease = this.leases.find((candidate) => candidate.leaseId === leaseId)
    if (!lease) return false
    const handed = { ...lease, holder, renewedAtMs: nowMs }
    this.leases = this.leases.filter((other) => other === lease || !isSameHolder(other, handed))
    this.leases = this.leases.map((other) => (other === lease ? handed : other))
    return true
  }

  expire(dead: readonly DeadLease[], nowMs: number): number {
    const ids = new Set(dead.map(({ leaseId }) => leaseId))
    return this.endLeases((lease) => ids.has(lease.leaseId) || !isLeaseLive(lease, nowMs))
  }

  setLock(filter: CopyFilter, lock: CopyLock | null): number {
    const found = this.copies.filter((copy) => isMatch(copy, filter) && copy.state !== 'evicting')
    for (const copy of found) this.change(copy.copyId, { lock: lock && (copy.lock ?? lock) })
    return found.length
  }

  addAdopted(copy: Copy): boolean {
    const isKnown = this.copies.some(
      ({ dataset, node, version, state }) =>
        dataset === copy.dataset && node === copy.node && version === copy.version && state !== 'evicting',
    )
    if (!isKnown) this.copies.push(copy)
    return !isKnown
  }

  returnCopy(
    copy: Copy,
    decide: (copies: readonly CopyUse[]) => Admission,
    nowMs: number,
  ): Admission['outcome'] | 'present' {
    const copies = this.uses({ node: copy.node }, nowMs)
    if (copies.some(({ dataset, state }) => dataset === copy.dataset && state !== 'evicting'))
      return 'present'
    const admission = decide(copies)
    if (admission.outcome !== 'admit' || admission.plan.victims.length > 0) return admission.outcome
    return this.addAdopted(copy) ? 'admit' : 'present'
  }

  forget(copyIds: readonly string[]): number {
    const found = this.copies.filter(({ copyId, state }) => copyIds.includes(copyId) && state === 'ready')
    for (const { copyId } of found) this.remove(copyId)
    return found.length
  }
}

function reserved(request: JoinRequest, copyId: string, nowMs: number): Copy {
  const { dataset, node, origin, source, lease } = request
  const directory = request.directoryOf(copyId)
  return newCopy({ copyId, dataset, node, origin, source, directory, lastTask: lease.task }, nowMs)
}
