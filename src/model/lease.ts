import { formatDuration, parseDuration } from './duration.js'

/** Maximum time a lease runs without renewal: 30 days, in ms. `dsc lock` keeps a copy for longer. */
export const MAX_LEASE_MS = 30 * 86_400_000

/** Parses the duration of a lease, into ms. Throws a RangeError for more than `MAX_LEASE_MS`. */
export function parseLeaseTime(raw: string): number {
  const durationMs = parseDuration(raw)
  if (durationMs <= MAX_LEASE_MS) return durationMs
  throw new RangeError(
    `expected at most ${formatDuration(MAX_LEASE_MS)}, found ${JSON.stringify(raw)}; dsc lock keeps a copy for longer`,
  )
}

/** The holder of a lease. `ttl` cannot be checked: its lease lasts until it expires or is released. */
export type LeaseHolder = (
  | ProcessHolder
  | { readonly kind: 'slurm'; readonly jobId: string }
  | { readonly kind: 'pod'; readonly uid: string }
  | { readonly kind: 'ttl' }
) & {
  /** Uid of the user who asked for it at the door of the node's service; absent: the owner of the cache took it. */
  readonly userId?: number | undefined
}

/** A process, distinguished from a later one with the same pid by its start time and the machine's boot. */
export interface ProcessHolder {
  readonly kind: 'process'
  /** Name of the machine, for people. */
  readonly host: string
  /** Id of the machine: only there can dsc check that the process has ended. */
  readonly machine: string
  readonly pid: number
  /** Start time in clock ticks since boot, as in /proc/<pid>/stat field 22. */
  readonly startTicks: string
  readonly bootId: string
  /** The pid namespace in which `pid` means something, as in /proc/self/ns/pid. */
  readonly pidNamespace: string
}

/** The holder's purpose. Only `use` and `transfer` count as references; `stage` marks the stager. */
export type LeasePurpose = 'use' | 'stage' | 'transfer'

/** One holder of one copy. The reference count of a copy is the number of its live leases. */
export interface Lease {
  readonly leaseId: string
  readonly copyId: string
  readonly purpose: LeasePurpose
  /** The job that uses the dataset: Slurm job, pod, `user@host:pid`, or the value of `--task`. */
  readonly task: string
  readonly holder: LeaseHolder
  readonly createdAtMs: number
  readonly renewedAtMs: number
  /** Unix epoch in ms after which the lease no longer counts; null = until its holder is gone. */
  readonly expiresAtMs: number | null
  /** When its task first read from the copy, if it did so during the download. */
  readonly readAtMs?: number
}

/** A lease, with the dataset and node of its copy. */
export interface PlacedLease extends Lease {
  readonly dataset: string
  readonly node: string
}

const TRANSFER_TASK = 'transfer to '

/** The task of a lease under which `node` downloads a dataset from the copy's own node. */
export function formatTransferTask(node: string): string {
  return TRANSFER_TASK + node
}

/** The node that downloads a dataset under this lease; undefined for any other lease. */
export function findReceiver({ purpose, task }: Pick<Lease, 'purpose' | 'task'>): string | undefined {
  return purpose === 'transfer' && task.startsWith(TRANSFER_TASK)
    ? task.slice(TRANSFER_TASK.length)
    : undefined
}

/** A caller's request for a lease. */
export interface LeaseRequest {
  readonly task: string
  readonly holder: LeaseHolder
  readonly expiresAtMs: number | null
  /** The parties of the task: `user:alice`, `account:nlp`, `group:vision`. Absent: unknown. */
  readonly parties?: readonly string[] | undefined
}

/** Whether the lease still counts at `nowMs`. The lease of a dead holder is removed instead. */
export function isLeaseLive(lease: Pick<Lease, 'expiresAtMs'>, nowMs: number): boolean {
  return lease.expiresAtMs === null || lease.expiresAtMs > nowMs
}

/** Uid 0 of a container in `userId`, above every uid of the kernel: its users are not the machine's. */
export const FIRST_CONTAINER_UID = 2 ** 32

/** `uid 1001`; `uid 0 in a container`. */
export function formatUid(userId: number): string {
  const isInContainer = userId >= FIRST_CONTAINER_UID
  return isInContainer ? `uid ${userId - FIRST_CONTAINER_UID} in a container` : `uid ${userId}`
}

/**
 * A few words for people: `process 4711 on gpu-07`, `Slurm job 12`, `until 2026-01-01T00:00:00Z`, with the user who
 * asked a service for it: a task's name says nothing about its user.
 */
export function formatHolder(lease: Pick<Lease, 'holder' | 'expiresAtMs'>): string {
  const { userId } = lease.holder
  return [formatHeld(lease), ...(userId === undefined ? [] : [formatUid(userId)])].join(', ')
}

function formatHeld(lease: Pick<Lease, 'holder' | 'expiresAtMs'>): string {
  const { holder } = lease
  switch (holder.kind) {
    case 'process':
      return `process ${holder.pid} on ${holder.host}`
    case 'slurm':
      return `Slurm job ${holder.jobId}`
    case 'pod':
      return `pod ${holder.uid}`
    case 'ttl':
      return lease.expiresAtMs === null
        ? 'until released'
        : `until ${new Date(lease.expiresAtMs).toISOString()}`
  }
}
