import type { FailureCode } from '../failure/dsc-error.js'
import type { Copy, CopyLock, CopyOrigin, CopyState, CopyUse, Stripe } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import type { Lease, LeaseHolder, LeasePurpose, LeaseRequest, PlacedLease } from '../model/lease.js'
import type { NodeEntry } from '../model/node.js'
import type { RecordEvent, RecordEventKind } from '../model/record-event.js'
import type { Admission } from '../policy/plan-admission.js'
import type { EvictionPlan } from '../policy/plan-eviction.js'
import type { ChangeWait } from './sql-database.js'

/**
 * The database of datasets, nodes, copies, leases, locks and their history.
 *
 * Every method is one transaction: it happens whole or not at all, also when the process is killed, and no
 * two callers can both win. Time is always an argument (Unix epoch in ms). Methods that decide take a pure
 * function which is called inside the transaction and sees what the transaction sees.
 *
 * A copy moves `reserved → staging → ready → evicting → gone`; the record says `ready` after the files have
 * their final name, and `evicting` before they lose it.
 */
export interface RecordStore {
  /** Where the record is, without secrets: for messages. */
  readonly location: string
  /**
   * The clock of the record, Unix epoch in ms: what every `nowMs` below should be. On a cluster it is the
   * database server's, so that leases mean the same on nodes whose clocks differ.
   */
  nowMs(): number
  /**
   * Waits until something may have changed: until another connection has changed a copy or a lease, at most
   * `atMostMs`, while the engine can be heard telling of changes; else `pollMs`. Reports of nodes and of history
   * alone are not told. Never rejects; look again after it in any case.
   */
  waitForChange(wait: ChangeWait): Promise<void>

  saveDataset(dataset: Dataset, nowMs: number): Promise<void>
  findDataset(name: string): Promise<Dataset | undefined>
  listDatasets(): Promise<readonly Dataset[]>
  /** Forgets a dataset. Returns the copies that forbid it (then nothing is removed), or an empty list. */
  removeDataset(name: string): Promise<readonly Copy[]>

  saveNode(node: NodeEntry): Promise<void>
  listNodes(): Promise<readonly NodeEntry[]>
  /**
   * Forgets a node that will not come back: its copies with their leases, and itself. Nothing on its disk is
   * touched. Returns the copies.
   */
  forgetNode(node: string, reason: string, nowMs: number): Promise<readonly Copy[]>

  /** Copies with their reference counts, ordered by dataset, node, creation. */
  listCopies(filter: CopyFilter, nowMs: number): Promise<readonly CopyUse[]>
  listLeases(filter: LeaseFilter): Promise<readonly PlacedLease[]>

  /**
   * Seed steps 2 and 3: uses the newest ready copy on the node if there is one. Renews the lease that the same
   * task and holder already have on it, else adds one; stamps last task and last use.
   */
  leaseReady(request: UseRequest, nowMs: number): Promise<Use | undefined>

  /** Leases one ready copy, whichever version it is. Undefined: it is no longer ready. */
  leaseCopy(
    copyId: string,
    purpose: 'use' | 'transfer',
    lease: LeaseRequest,
    nowMs: number,
  ): Promise<string | undefined>

  /**
   * Joins the staging of a dataset (or of a stripe of it) on a node, or begins it. At most one staging of the same
   * exists.
   * The use lease is added whatever the outcome, so that nothing evicts the copy between publish and use.
   */
  joinStaging(request: JoinRequest, nowMs: number): Promise<Joined>

  /**
   * Admits a listed source, or refuses it. On `admit` the plan's victims become `evicting` and the copy
   * `staging` with its bytes charged. `lost`: the stage lease is gone, somebody took over.
   * `same-version`: this version is ready on the node already; the use leases moved to it, the reserved copy is gone.
   */
  admit(
    request: AdmitRequest,
    decide: (copies: readonly CopyUse[]) => Admission,
    nowMs: number,
  ): Promise<
    Admission | { readonly outcome: 'lost' } | { readonly outcome: 'same-version'; readonly copy: Copy }
  >

  /** Notes how much is written and renews the stage lease. False: the lease is gone, stop writing. */
  reportProgress(progress: StagingProgress, nowMs: number): Promise<boolean>

  /** The files have their final name: the copy is ready and its stage lease ends. False: the lease is gone. */
  markReady(published: PublishedCopy, nowMs: number): Promise<boolean>

  /**
   * Ends the caller's staging. With `forget`, the copy and its leases go (its files must be gone already);
   * else it stays as abandoned staging, resumable and, without leases, evictable. `useLeaseId` is released in both
   * cases; null = the task goes on.
   * A failure is kept in the history: those who wait for this copy report it.
   */
  endStaging(ended: EndedStaging, nowMs: number): Promise<void>

  /** Marks the copies of a plan `evicting`. The plan is made inside the transaction; its result is returned. */
  beginEviction(
    node: string,
    decide: (copies: readonly CopyUse[]) => EvictionPlan,
    task: string | null,
    nowMs: number,
  ): Promise<EvictionPlan>
  /** The files of an `evicting` copy are gone: removes its row and leases. False: it was gone already. */
  finishEviction(copyId: string, nowMs: number): Promise<boolean>

  /** Ends the use leases of a task. Returns how many there were. */
  releaseUses(filter: ReleaseFilter, nowMs: number): Promise<number>
  /** Moves the expiry of a lease. False: it no longer exists. */
  renewLease(leaseId: string, expiresAtMs: number | null, nowMs: number): Promise<boolean>
  /**
   * Gives a lease to another holder, who keeps it from now on; one that this holder had for the same task and
   * purpose on the copy ends. False: it no longer exists.
   */
  handOverLease(leaseId: string, holder: LeaseHolder, nowMs: number): Promise<boolean>
  /** Ends leases whose holders were found dead, and all that have expired. Returns those ended. */
  expireLeases(dead: readonly DeadLease[], nowMs: number): Promise<readonly Lease[]>

  /** Locks (or, with null, unlocks) every copy that matches. Returns the copies as they are now. */
  setLock(filter: CopyFilter, lock: CopyLock | null, nowMs: number): Promise<readonly Copy[]>

  /** Adds a copy that was on disk before. False: its dataset has that version on the node, ready or being staged. */
  addAdopted(copy: Copy, nowMs: number): Promise<boolean>
  /** Forgets ready copies whose files are gone from disk. Returns how many were still ready. */
  forgetCopies(copyIds: readonly string[], reason: string, nowMs: number): Promise<number>

  /**
   * Gives the stripes of a version that lie on `from` another list of nodes: `to` takes the place of nodes that were
   * lost. Stripes of the nodes that both lists have in the same place are changed; the rest is left. Returns them.
   */
  moveStripes(move: StripeMove, nowMs: number): Promise<readonly Copy[]>

  addEvent(event: Omit<RecordEvent, 'sequence'>): Promise<void>
  /** Newest first. */
  listEvents(filter: EventFilter): Promise<readonly RecordEvent[]>
  /** Forgets history older than `beforeMs`. Returns how many events that were. */
  pruneEvents(beforeMs: number): Promise<number>

  close(): Promise<void>
}

export interface CopyFilter {
  readonly dataset?: string
  readonly node?: string
  readonly copyId?: string
  readonly states?: readonly CopyState[]
}

/** Of one version: the nodes of its stripes as they are, and as they shall be. As many of each. */
export interface StripeMove {
  readonly dataset: string
  readonly version: string
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly reason: string
}

export interface LeaseFilter {
  readonly purpose?: LeasePurpose
  readonly dataset?: string
  readonly node?: string
  readonly copyId?: string
}

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

/** A copy and the lease that keeps it. */
export interface Use {
  readonly copy: Copy
  readonly leaseId: string
}

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

export interface AdmitRequest {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly version: string
  readonly files: number
  readonly contentBytes: number
  readonly chargedBytes: number
  readonly chargedInodes: number
}

export interface StagingProgress {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly writtenBytes: number
  readonly expiresAtMs: number | null
}

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

export interface EndedStaging {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly useLeaseId: string | null
  readonly isForgotten: boolean
  readonly failure?: StagingFailure
}

/** What a failed staging leaves for those who wait for it. */
export interface StagingFailure {
  readonly code: FailureCode
  readonly message: string
  readonly hint: string | undefined
}

export interface ReleaseFilter {
  readonly task?: string
  readonly dataset?: string
  readonly node?: string
  readonly leaseId?: string
}

export interface DeadLease {
  readonly leaseId: string
  readonly reason: string
}

export interface EventFilter {
  readonly dataset?: string
  readonly node?: string
  readonly copyId?: string
  readonly kinds?: readonly RecordEventKind[]
  readonly sinceMs?: number
  readonly limit: number
}
