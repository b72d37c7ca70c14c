import type { FailureCode } from '../../failure/failure-table.js'
import type { Copy, CopyOrigin, CopyState, Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { Lease, LeasePurpose, LeaseRequest } from '../../model/lease.js'
import type { RecordEventKind } from '../../model/record-event.js'

/** Selects the copies that match every given field; with none given, every copy. */
export interface CopyFilter {
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly copyId?: string | undefined
  readonly states?: readonly CopyState[] | undefined
  /** Only copies of these datasets. */
  readonly datasets?: readonly string[] | undefined
  /** Only stripes, and copies that remember layouts that lost their last stripe. */
  readonly isStriped?: true | undefined
  /** Only copies of this URL, without slashes at its end. */
  readonly sourceUrl?: string | undefined
  /** Only copies of repositories of hubs. */
  readonly isOfHub?: true | undefined
  /** Only copies after this one, in the order of the answer. */
  readonly after?: Pick<Copy, 'dataset' | 'node' | 'createdAtMs' | 'copyId'> | undefined
  /** Ordered by when they became ready, newest first; not with `after`. */
  readonly isNewestFirst?: true | undefined
  /** Maximum number of copies, from the first. */
  readonly limit?: number | undefined
}

/** For one version: the current and the new nodes of its stripes, equally many. */
export interface StripeMove {
  readonly dataset: string
  readonly version: string
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly reason: string
}

/** Selects the leases that match every given field. */
export interface LeaseFilter extends ReleaseFilter {
  readonly purpose?: LeasePurpose | undefined
  readonly copyId?: string | undefined
  /** Only leases that expire by this time, Unix epoch, ms, or whose holder can be gone: a process, a job, a pod. */
  readonly mayBeOverAtMs?: number | undefined
  /** Only leases after this one, in the order of the answer. */
  readonly after?: Pick<Lease, 'createdAtMs' | 'leaseId'> | undefined
  /** Maximum number of leases, from the first. */
  readonly limit?: number | undefined
}

/** A task's request to use a dataset on a node. */
export interface UseRequest {
  readonly dataset: string
  readonly node: string
  readonly lease: LeaseRequest
  /** Default `use`. */
  readonly purpose?: 'use' | 'transfer'
  /** The wanted part, which a whole copy has, too. Absent: a whole copy. */
  readonly stripe?: Stripe | undefined
  /** Default: the version that became ready last. */
  readonly version?: string | undefined
  /** Pure; false ignores a ready copy, as if it did not exist. Default: accepts any copy. */
  readonly accept?: (copy: Copy) => boolean
}

/** A request for a lease on one copy. */
export interface CopyLeaseRequest {
  readonly copyId: string
  readonly purpose: 'use' | 'transfer'
  readonly lease: LeaseRequest
}

/** The node to evict on, and the task to evict for; null = no task. */
export interface EvictionRequest {
  readonly node: string
  /** The only copies that it decides about. Default: all of the node. */
  readonly only?: Pick<CopyFilter, 'copyId' | 'datasets'> | undefined
  readonly task: string | null
  /** The user whose deed it is, who may take it back; absent: the limits decided. */
  readonly by?: string | undefined
}

/** The part of a node's order of eviction that is wanted. */
export interface OrderRequest {
  readonly node: string
  /** The dataset whose copies are ranked. */
  readonly dataset: string
  /** Maximum number of copies from the head of the order. */
  readonly limit: number
}

/** An evicted copy that is ready again, under another id, and the line of the history about its return. */
export interface ReturnedCopy {
  readonly copy: Copy
  readonly reason: string
  /** Sequence number of its eviction. */
  readonly undoes: number
}

/** A copy and its lease. */
export interface Use {
  readonly copy: Copy
  readonly leaseId: string
}

/** A request for a dataset that dsc may have to stage, and how to stage it. */
export interface JoinRequest extends UseRequest {
  readonly source: Dataset
  readonly origin: CopyOrigin
  /** The directory in which to stage the copy with this id; the record stores the answer. */
  readonly directoryOf: (copyId: string) => string
  readonly stager: LeaseRequest
  /** Stage even if a ready copy exists: its source may have changed (`--refresh`). */
  readonly isRefresh: boolean
}

/**
 * `ready`: nothing to do. `stage`: the caller is now the stager (`isResumed`: of an abandoned staging). `wait`: another
 * stager is alive (or not known to be dead); look again.
 */
export type Joined =
  | { readonly outcome: 'ready'; readonly copy: Copy; readonly leaseId: string }
  | {
      readonly outcome: 'stage'
      readonly copy: Copy
      readonly leaseId: string
      readonly stageLeaseId: string
      readonly isResumed: boolean
    }
  | { readonly outcome: 'wait'; readonly copy: Copy; readonly leaseId: string; readonly stageLease: Lease }

/** The size of a listed source. */
export interface AdmitRequest
  extends Pick<Copy, 'copyId' | 'files' | 'contentBytes' | 'chargedBytes' | 'chargedInodes'> {
  readonly stageLeaseId: string
  readonly version: string
}

/** The total that a ready copy is charged from now on. */
export interface ChargeRequest extends Pick<Copy, 'copyId' | 'chargedBytes' | 'chargedInodes'> {
  /** The task to evict for, if anything is evicted. */
  readonly task: string | null
}

/** The progress of a staging. */
export interface StagingProgress {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly writtenBytes: number
  readonly expiresAtMs: number | null
}

/** A copy whose files have their final name, with its measured size. */
export interface PublishedCopy
  extends Pick<Copy, 'copyId' | 'directory' | 'path' | 'chargedBytes' | 'chargedInodes'> {
  readonly stageLeaseId: string
  /** The final source of the bytes; absent = as when the staging began. */
  readonly origin?: CopyOrigin | undefined
  readonly reason: string
  readonly detail: Readonly<Record<string, unknown>>
}

/** A staging that ended before its copy was ready. */
export interface EndedStaging {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly useLeaseId: string | null
  readonly isForgotten: boolean
  readonly failure?: StagingFailure | undefined
}

/** A failed staging, recorded for those who wait for it. */
interface StagingFailure {
  /** As `createFailureId` makes it. */
  readonly id: string
  readonly code: FailureCode
  readonly message: string
  readonly hint: string | undefined
  /** As in `DscError`. */
  readonly facts?: Readonly<Record<string, unknown>> | undefined
}

/** Selects the use leases to end: those that match every given field. */
export interface ReleaseFilter {
  readonly task?: string | undefined
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly leaseId?: string | undefined
}

/** A lease with a dead holder, and the evidence. */
export interface DeadLease {
  readonly leaseId: string
  readonly reason: string
}

/** Selects a part of the history. */
export interface EventFilter {
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly copyId?: string | undefined
  /** Default: all but `fed`. */
  readonly kinds?: readonly RecordEventKind[] | undefined
  readonly sinceMs?: number | undefined
  readonly task?: string | undefined
  /** Only the events of this failure. */
  readonly failureId?: string | undefined
  /** Only events with a lower sequence number. */
  readonly before?: number | undefined
  readonly limit: number
}
