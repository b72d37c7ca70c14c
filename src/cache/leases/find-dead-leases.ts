import type { Lease, ProcessHolder } from '../../model/lease.js'

/** Observations about the holders of leases. */
interface HolderObservations {
  /** `seenAgoMs`: how long ago the process was alive for certain. */
  readonly checkProcess: (holder: ProcessHolder, seenAgoMs: number) => 'alive' | 'dead' | 'unknown'
  /** Jobs that Slurm still lists; undefined if it could not be asked. */
  readonly slurmJobs: ReadonlySet<string> | undefined
  /** Whether the pod of a lease has ended, by an agent that sees the node's pods. Default: nobody knows. */
  readonly isPodGone?: ((lease: Lease) => boolean) | undefined
  readonly nowMs: number
}

/** A lease whose holder is gone, and the reason for thinking so. */
export interface FoundDead {
  readonly leaseId: string
  readonly reason: string
}

/** A lease of a process that cannot be seen, in another pid namespace, ends after this time without renewal. */
const MAX_UNSEEN_PROCESS_MS = 24 * 3_600_000

/**
 * Finds leases whose holders are known to be gone. If in doubt, a holder is alive: data in use must not lose its lease.
 *
 * | holder                          | dead when                                         |
 * |---------------------------------|---------------------------------------------------|
 * | process, visible                | no such pid, another start time, or a later boot  |
 * | process, in another namespace   | not renewed for 24 h                              |
 * | Slurm job                       | squeue answered and does not list it              |
 * | pod                             | the node's agent sees its pods, and not this one  |
 * | ttl                             | never; they expire                                |
 */
export function findDeadLeases(leases: readonly Lease[], seen: HolderObservations): readonly FoundDead[] {
  return leases.flatMap((lease) => {
    const reason = explainDeath(lease, seen)
    return reason === undefined ? [] : [{ leaseId: lease.leaseId, reason }]
  })
}

function explainDeath(lease: Lease, seen: HolderObservations): string | undefined {
  const { holder } = lease
  if (holder.kind === 'process') {
    const state = seen.checkProcess(holder, seen.nowMs - lease.renewedAtMs)
    if (state === 'dead') return `process ${holder.pid} on ${holder.host} has ended`
    const isForgotten = lease.expiresAtMs === null && seen.nowMs - lease.renewedAtMs > MAX_UNSEEN_PROCESS_MS
    if (state === 'unknown' && isForgotten)
      return `process ${holder.pid} on ${holder.host} cannot be seen and has not renewed for 24 h`
  }
  if (holder.kind === 'slurm' && seen.slurmJobs !== undefined && !seen.slurmJobs.has(holder.jobId)) {
    return `Slurm job ${holder.jobId} is not in the queue any more`
  }
  if (holder.kind === 'pod' && seen.isPodGone?.(lease)) return `pod ${holder.uid} has ended`
  return undefined
}
