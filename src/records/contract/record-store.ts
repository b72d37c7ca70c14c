import type { Copy, CopyLock, CopyUse } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { Lease, LeaseHolder, PlacedLease } from '../../model/lease.js'
import type { NodeEntry, NodeIdentity } from '../../model/node.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { CopySum } from '../../policy/copy-sums.js'
import type { Admission } from '../../policy/plan-admission.js'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type {
  AdmitRequest,
  ChargeRequest,
  CopyFilter,
  CopyLeaseRequest,
  DeadLease,
  EndedStaging,
  EventFilter,
  EvictionRequest,
  Joined,
  JoinRequest,
  LeaseFilter,
  PublishedCopy,
  ReleaseFilter,
  StagingProgress,
  StripeMove,
  Use,
  UseRequest,
} from './record-requests.js'

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
  /** Whether this user may only look: what writes is refused, and what is read is as it was when it was opened. */
  readonly isReadOnly?: boolean
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

  /**
   * Says how a node is at present. What is known of its agent stays unless told; so does its identity once it has
   * one. Returns the node as it is now.
   */
  saveNode(node: NodeEntry): Promise<NodeEntry>
  /** Gives a node's name to another cache root or machine; undefined makes it nobody's. False: no such node. */
  claimNode(node: string, identity: NodeIdentity | undefined): Promise<boolean>
  /**
   * Calls a node otherwise: itself, its copies, and its place in lists of stripes. Returns its copies. Rejects with
   * NODE_TAKEN, and changes nothing, when there is a node of the new name.
   */
  renameNode(from: string, to: string): Promise<readonly Copy[]>
  listNodes(): Promise<readonly NodeEntry[]>
  /**
   * Forgets a node that will not come back: its copies with their leases, and itself. Nothing on its disk is
   * touched. Returns the copies.
   */
  forgetNode(node: string, reason: string, nowMs: number): Promise<readonly Copy[]>

  /** Copies with their reference counts, ordered by dataset, node, creation. */
  listCopies(filter: CopyFilter, nowMs: number): Promise<readonly CopyUse[]>
  /** What copies come to, by node: as `sumUpCopies` of those that match, without reading them. */
  sumCopies(filter: Pick<CopyFilter, 'dataset' | 'node'>, nowMs: number): Promise<readonly CopySum[]>
  /** The datasets whose copies, of those that match, were used last, equals by name. */
  listNewestDatasets(filter: Pick<CopyFilter, 'dataset' | 'node'>, limit: number): Promise<NewestDatasets>
  /** Where the copies of a node lie, in no order. */
  listPlaces(node: string): Promise<readonly CopyPlace[]>
  listLeases(filter: LeaseFilter): Promise<readonly PlacedLease[]>

  /**
   * Seed steps 2 and 3: uses the newest ready copy on the node if there is one. Renews the lease that the same
   * task and holder already have on it, else adds one; stamps last task and last use.
   */
  leaseReady(request: UseRequest, nowMs: number): Promise<Use | undefined>

  /** Leases one ready copy, whichever version it is. Undefined: it is no longer ready. */
  leaseCopy(request: CopyLeaseRequest, nowMs: number): Promise<string | undefined>

  /**
   * Joins the staging of a dataset (or of a stripe of it) on a node, or begins it. At most one staging of the same
   * exists.
   * The use lease is added whatever the outcome, so that nothing evicts the copy between publish and use.
   */
  joinOrReserve(request: JoinRequest, nowMs: number): Promise<Joined>

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

  /**
   * Charges a ready copy for what lies beside its files, too, or refuses, as `admit` does; it must be leased, or it may
   * be a victim itself. `gone`: it is not ready any more.
   */
  chargeCopy(
    request: ChargeRequest,
    decide: (copies: readonly CopyUse[]) => Admission,
    nowMs: number,
  ): Promise<Admission | { readonly outcome: 'gone' }>

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
    request: EvictionRequest,
    decide: (copies: readonly CopyUse[]) => EvictionPlan,
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
  /**
   * Forgets at most `limit` events older than `beforeMs`, oldest first, and gives some of the room that is free by then
   * back to the file system. Returns how many it forgot.
   */
  pruneEvents(beforeMs: number, limit: number): Promise<number>

  /** Why the record takes no writes at present, as a sentence; undefined = it does. */
  findHindrance(): Promise<string | undefined>

  close(): Promise<void>
}

/** Names of datasets, and how many there are in all. */
export interface NewestDatasets {
  /** Those used last come first. */
  readonly names: readonly string[]
  readonly total: number
}

/** Where a copy lies, in few words: for whoever looks whether 100,000 of them are still there. */
export interface CopyPlace extends Pick<Copy, 'dataset' | 'path'> {
  /** Ready, staged by dsc, and read by no other node nor repaired. */
  readonly isPlain: boolean
}

/** How a wait for changes ends. */
export interface ChangeWait {
  /** After so long while changes cannot be heard of, ms. */
  readonly pollMs: number
  /** After so long while they can, ms. */
  readonly atMostMs: number
  /** Only changes that may concern this copy. Default: any. */
  readonly about?: { readonly node: string; readonly copyId: string }
  readonly signal?: AbortSignal
}
