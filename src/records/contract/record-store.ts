import type { Copy, CopyLock, CopyUse } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { Lease, LeaseHolder, PlacedLease } from '../../model/lease.js'
import type { NodeEntry, NodeIdentity } from '../../model/node.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { CopySum } from '../../policy/copy-sums.js'
import type { EvictionOrder } from '../../policy/eviction-order.js'
import type { Admission } from '../../policy/plan-admission.js'
import type { EvictionPlan, UnreadCopies } from '../../policy/plan-eviction.js'
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
  OrderRequest,
  PublishedCopy,
  ReleaseFilter,
  ReturnedCopy,
  StagingProgress,
  StripeMove,
  Use,
  UseRequest,
} from './record-requests.js'

/**
 * The database of datasets, nodes, copies, leases, locks and their history.
 *
 * Every method is one transaction: it happens completely or not at all, even if the process is killed, and no two
 * callers can both win. Time is always an argument (Unix epoch in ms). Methods that decide take a pure function, which
 * is called inside the transaction and sees its snapshot.
 *
 * A copy moves `reserved → staging → ready → evicting → gone`; the record says `ready` after the files have their final
 * name, and `evicting` before they lose it.
 */
export interface RecordStore {
  /** Location of the record for messages, without secrets. */
  readonly location: string
  /** Whether this user can only read: writes are refused, and reads show the state when it was opened. */
  readonly isReadOnly?: boolean
  /**
   * The clock of the record, Unix epoch in ms; pass it as every `nowMs` below. On a cluster it is the database
   * server's, so that leases mean the same on nodes with different clocks.
   */
  nowMs(): number
  /**
   * Waits for a possible change: until somebody changes a copy or a lease, at most `atMostMs`, while the engine reports
   * changes; otherwise `pollMs`. An engine that can tell leaves out reports of nodes and of history. Never rejects; look
   * again after it in any case.
   */
  waitForChange(wait: ChangeWait): Promise<void>

  saveDataset(dataset: Dataset, nowMs: number): Promise<void>
  findDataset(name: string): Promise<Dataset | undefined>
  listDatasets(): Promise<readonly Dataset[]>
  /** Forgets a dataset. Returns the copies that prevent it (then nothing is removed), or an empty list. */
  removeDataset(name: string): Promise<readonly Copy[]>

  /**
   * Saves the current state of a node. Missing facts about its agent stay unchanged; an identity, once set, always
   * does. Returns the saved node.
   */
  saveNode(node: NodeEntry): Promise<NodeEntry>
  /** Assigns a node's name to another cache root or machine, or to none (undefined). False: no such node. */
  claimNode(node: string, identity: NodeIdentity | undefined): Promise<boolean>
  /**
   * Renames a node: itself, its copies, and its place in lists of stripes. Returns its copies. Rejects with NODE_TAKEN,
   * and changes nothing, if a node has the new name.
   */
  renameNode(from: string, to: string): Promise<readonly Copy[]>
  listNodes(): Promise<readonly NodeEntry[]>
  /**
   * Forgets a node that will not come back, with its copies and their leases. Touches nothing on its disk. Returns the
   * copies.
   */
  forgetNode(node: string, reason: string, nowMs: number): Promise<readonly Copy[]>

  /** Copies with their reference counts, ordered by dataset, node, creation. */
  listCopies(filter: CopyFilter, nowMs: number): Promise<readonly CopyUse[]>
  /** Sums the matching copies by node: the result of `sumUpCopies`, without reading them. */
  sumCopies(filter: Pick<CopyFilter, 'dataset' | 'node'>, nowMs: number): Promise<readonly CopySum[]>
  /** The most recently used datasets of the matching copies, ties by name. */
  listNewestDatasets(filter: Pick<CopyFilter, 'dataset' | 'node'>, limit: number): Promise<NewestDatasets>
  /** Places of a node's copies, unordered. */
  listPlaces(node: string): Promise<readonly CopyPlace[]>
  listLeases(filter: LeaseFilter): Promise<readonly PlacedLease[]>

  /**
   * Seed steps 2 and 3: uses the newest ready copy on the node, if any. Renews the lease that the same task and holder
   * already have on it, else adds one; stamps last task and last use.
   */
  leaseReady(request: UseRequest, nowMs: number): Promise<Use | undefined>

  /** Leases one ready copy, of any version. Undefined: it is no longer ready. */
  leaseCopy(request: CopyLeaseRequest, nowMs: number): Promise<string | undefined>

  /**
   * Joins the staging of a dataset (or of a stripe of it) on a node, or begins it. At most one such staging exists.
   * Adds the use lease in every case, so that nothing evicts the copy between publish and use.
   */
  joinOrReserve(request: JoinRequest, nowMs: number): Promise<Joined>

  /**
   * Admits a listed source, or refuses it. On `admit` the plan's victims become `evicting` and the copy `staging` with
   * its bytes charged. `lost`: the stage lease is gone, another stager took over. `same-version`: this version is
   * already ready on the node; the use leases moved to it, the reserved copy is gone.
   */
  admit(
    request: AdmitRequest,
    decide: Decide<Admission>,
    nowMs: number,
  ): Promise<
    Admission | { readonly outcome: 'lost' } | { readonly outcome: 'same-version'; readonly copy: Copy }
  >

  /**
   * Charges a ready copy also for what lies beside its files, or refuses, as `admit` does. The copy must be leased, or
   * it may be a victim itself. `gone`: it is no longer ready.
   */
  chargeCopy(
    request: ChargeRequest,
    decide: Decide<Admission>,
    nowMs: number,
  ): Promise<Admission | { readonly outcome: 'gone' }>

  /** Records the bytes written and renews the stage lease. False: the lease is gone, stop writing. */
  reportProgress(progress: StagingProgress, nowMs: number): Promise<boolean>

  /** The files have their final name: the copy is ready and its stage lease ends. False: the lease is gone. */
  markReady(published: PublishedCopy, nowMs: number): Promise<boolean>

  /**
   * Ends the caller's staging. With `forget`, removes the copy and its leases (its files must be gone already);
   * otherwise it stays as an abandoned staging, resumable and, without leases, evictable. Releases `useLeaseId` in both
   * cases; null = the task continues. Keeps a failure in the history: those who wait for this copy report it.
   */
  endStaging(ended: EndedStaging, nowMs: number): Promise<void>

  /** The plan that `beginEviction` would make now. Changes nothing. */
  foreseeEviction(
    request: Pick<EvictionRequest, 'node' | 'only'>,
    decide: Decide<EvictionPlan>,
    nowMs: number,
  ): Promise<EvictionPlan>
  /** The order of eviction on a node: its first copies, and where those of one dataset stand. */
  foreseeOrder(request: OrderRequest, nowMs: number): Promise<EvictionOrder>
  /** Marks a plan's copies `evicting`. Makes the plan inside the transaction and returns it. */
  beginEviction(request: EvictionRequest, decide: Decide<EvictionPlan>, nowMs: number): Promise<EvictionPlan>
  /** The files of an `evicting` copy are gone: removes its row and leases. False: it was already gone. */
  finishEviction(copyId: string, nowMs: number): Promise<boolean>

  /** Ends the use leases of a task. Returns how many there were. `by`: the user whose deed it is, who may undo it. */
  releaseUses(filter: ReleaseFilter, nowMs: number, by?: string): Promise<number>
  /** Moves the expiry of a lease. False: it no longer exists. */
  renewLease(leaseId: string, expiresAtMs: number | null, nowMs: number): Promise<boolean>
  /** Notes that the task of a lease reads from the copy while it is downloaded. False: the lease no longer exists. */
  noteReading(leaseId: string, nowMs: number): Promise<boolean>
  /**
   * Transfers a lease to another holder; ends one that this holder had on the copy for the same task and purpose.
   * False: it no longer exists.
   */
  handOverLease(leaseId: string, holder: LeaseHolder, nowMs: number): Promise<boolean>
  /** Ends leases with dead holders, and expired ones. Returns them. */
  expireLeases(dead: readonly DeadLease[], nowMs: number): Promise<readonly Lease[]>

  /**
   * Locks (or, with null, unlocks) every matching copy. Returns the changed copies. `by`: the user whose unlocking it
   * is, who may undo it.
   */
  setLock(filter: CopyFilter, lock: CopyLock | null, nowMs: number, by?: string): Promise<readonly Copy[]>

  /** Adds a copy that was already on disk. False: its dataset has that version on the node, ready or being staged. */
  addAdopted(copy: Copy, nowMs: number): Promise<boolean>
  /**
   * Adds an evicted copy whose files are back, if it is admitted without a victim. `present`: the node has the dataset
   * (or the stripe) again, in any version, or stages it: jobs would get the older one.
   */
  returnCopy(
    returned: ReturnedCopy,
    decide: Decide<Admission>,
    nowMs: number,
  ): Promise<Admission | { readonly outcome: 'present' }>
  /** Forgets ready copies whose files are gone from disk. Returns how many were still ready. */
  forgetCopies(copyIds: readonly string[], reason: string, nowMs: number): Promise<number>

  /**
   * Replaces the node list `from` of a version's stripes by `to`, which has new nodes in the places of lost ones.
   * Changes only the stripes on nodes that have the same place in both lists. Returns them.
   */
  moveStripes(move: StripeMove, nowMs: number): Promise<readonly Copy[]>

  addEvent(event: Omit<RecordEvent, 'sequence'>): Promise<void>
  /** Newest first. */
  listEvents(filter: EventFilter): Promise<readonly RecordEvent[]>
  /**
   * Forgets at most `limit` events older than `beforeMs`, oldest first, then returns some of the free space to the file
   * system. Returns how many it forgot.
   */
  pruneEvents(beforeMs: number, limit: number): Promise<number>

  /** Why the record currently takes no writes, as a sentence; undefined = it does. */
  findHindrance(): Promise<string | undefined>

  close(): Promise<void>
}

/**
 * Decides about the copies of a node; pure. With `unread`, some are known as sums alone: if they could change a plan,
 * `planEviction` says so in it, and the decision is asked for again, with more copies.
 */
export type Decide<Decision> = (copies: readonly CopyUse[], unread?: UnreadCopies) => Decision

/** Names of datasets, and their total number. */
export interface NewestDatasets {
  /** Most recently used first. */
  readonly names: readonly string[]
  readonly total: number
}

/** The place of a copy, kept small: for checking whether 100,000 of them still exist. */
export interface CopyPlace extends Pick<Copy, 'dataset' | 'path'> {
  /** Ready, staged by dsc, and neither read by another node nor repaired. */
  readonly isPlain: boolean
}

/** The conditions that end a wait for changes. */
export interface ChangeWait {
  /** Maximum wait without notice of changes, ms. */
  readonly pollMs: number
  /** Maximum wait with notice of changes, ms. */
  readonly atMostMs: number
  /** Only changes that may concern this copy. Default: any. */
  readonly about?: { readonly node: string; readonly copyId: string }
  readonly signal?: AbortSignal | undefined
}
