import type { FailureCode } from '../../failure/dsc-error.js'
import type { Copy, CopyOrigin, CopyState, Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { Lease, LeasePurpose, LeaseRequest } from '../../model/lease.js'
import type { RecordEventKind } from '../../model/record-event.js'

/** Copies that match all that is given; nothing given = every copy. */
export interface CopyFilter {
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly copyId?: string | undefined
  readonly states?: readonly CopyState[] | undefined
  /** Of these datasets. */
  readonly datasets?: readonly string[] | undefined
  /** Only stripes, and copies that tell of layouts whose last stripe was lost. */
  readonly isStriped?: true | undefined
  /** Only those that come after this one in the order of the answer. */
  readonly after?: Pick<Copy, 'dataset' | 'node' | 'createdAtMs' | 'copyId'> | undefined
  /** At most so many, the first ones. */
  readonly limit?: number | undefined
}

/** Of one version: the nodes of its stripes as they are, and as they shall be. As many of each. */
export interface StripeMove {
  readonly dataset: string
  readonly version: string
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly reason: string
}

/** Leases that match all that is given. */
export interface LeaseFilter {
  readonly purpose?: LeasePurpose | undefined
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly copyId?: string | undefined
  /** Only those that come after this one in the order of the answer. */
  readonly after?: Pick<Lease, 'createdAtMs' | 'leaseId'> | undefined
  /** At most so many, the first ones. */
  readonly limit?: number | undefined
}

/** Who wants to use which dataset on which node. */
export interface UseRequest {
  readonly dataset: string
  readonly node: string
  readonly lease: LeaseRequest
  /** Default `use`. */
  readonly purpose?: 'use' | 'transfer'
  /** The part that is wanted, which a whole copy has too. Absent: a whole copy. */
  readonly stripe?: Stripe
  /** Default: whichever version became ready last. */
  readonly version?: string
  /** Pure; false leaves a ready copy alone, as if it were not there. Default: any copy will do. */
  readonly accept?: (copy: Copy) => boolean
}

/** Who keeps one copy, and why. */
export interface CopyLeaseRequest {
  readonly copyId: string
  readonly purpose: 'use' | 'transfer'
  readonly lease: LeaseRequest
}

/** Where to evict, and for which task; null = for none. */
export interface EvictionRequest {
  readonly node: string
  readonly task: string | null
}

/** A copy and the lease that keeps it. */
export interface Use {
  readonly copy: Copy
  readonly leaseId: string
}

/** Who wants a dataset that may have to be staged, and how it would be. */
export interface JoinRequest extends UseRequest {
  readonly source: Dataset
  readonly origin: CopyOrigin
  /** Where a copy with this id is staged; the record stores the answer. */
  readonly directoryOf: (copyId: string) => string
  readonly stager: LeaseRequest
  /** Stage even where a ready copy exists: its source may have changed (`--refresh`). */
  readonly isRefresh: boolean
}

/**
 * `ready`: nothing to do. `stage`: the caller is the stager now (`isResumed`: of a staging that somebody left).
 * `wait`: another stager is alive (or not known to be dead); look again.
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

/** What a listed source comes to. */
export interface AdmitRequest {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly version: string
  readonly files: number
  readonly contentBytes: number
  readonly chargedBytes: number
  readonly chargedInodes: number
}

/** What a ready copy takes from now on, all of it. */
export interface ChargeRequest {
  readonly copyId: string
  readonly chargedBytes: number
  readonly chargedInodes: number
  /** For whom copies are evicted, where some are. */
  readonly task: string | null
}

/** How far a staging is. */
export interface StagingProgress {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly writtenBytes: number
  readonly expiresAtMs: number | null
}

/** A copy whose files have their final name, as it was measured. */
export interface PublishedCopy {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly directory: string
  readonly path: string
  /** Where the bytes came from in the end; absent = as the staging began. */
  readonly origin?: CopyOrigin
  readonly chargedBytes: number
  readonly chargedInodes: number
  readonly reason: string
  readonly detail: Readonly<Record<string, unknown>>
}

/** A staging that is over before its copy is ready. */
export interface EndedStaging {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly useLeaseId: string | null
  readonly isForgotten: boolean
  readonly failure?: StagingFailure
}

/** What a failed staging leaves for those who wait for it. */
interface StagingFailure {
  /** As `createFailureId` makes it. */
  readonly id: string
  readonly code: FailureCode
  readonly message: string
  readonly hint: string | undefined
  /** As in `DscError`. */
  readonly facts?: Readonly<Record<string, unknown>> | undefined
}

/** Whose use leases end: those that match all that is given. */
export interface ReleaseFilter {
  readonly task?: string | undefined
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly leaseId?: string | undefined
}

/** A lease whose holder was found dead, and how that is known. */
export interface DeadLease {
  readonly leaseId: string
  readonly reason: string
}

/** Which part of the history. */
export interface EventFilter {
  readonly dataset?: string | undefined
  readonly node?: string | undefined
  readonly copyId?: string | undefined
  readonly kinds?: readonly RecordEventKind[] | undefined
  readonly sinceMs?: number | undefined
  readonly task?: string | undefined
  /** Of a failure. */
  readonly failureId?: string | undefined
  /** Only events older than the one of this sequence number. */
  readonly before?: number | undefined
  readonly limit: number
}
