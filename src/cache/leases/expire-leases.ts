import type { Lease } from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'
import type { Cache } from '../cache.js'
import { findDeadLeases } from './find-dead-leases.js'

/**
 * Ends every lease of this node whose holder is known to be gone, and all that have expired. `asksSlurm`: also ask
 * squeue, which takes a while and helps only if a Slurm job holds a lease.
 */
export async function expireDeadLeases(
  cache: Cache,
  options: { readonly asksSlurm: boolean; readonly isPodGone?: ((lease: Lease) => boolean) | undefined },
): Promise<readonly Lease[]> {
  const leases = await cache.record.listLeases({ node: cache.node, mayBeOverAtMs: cache.nowMs() })
  const hasSlurm = leases.some(({ holder }) => holder.kind === 'slurm')
  const slurmJobs = hasSlurm && options.asksSlurm ? await cache.listSlurmJobs() : undefined
  const nowMs = cache.nowMs()
  const dead = findDeadLeases(leases, { checkProcess, slurmJobs, isPodGone: options.isPodGone, nowMs })
  const hasExpired = leases.some(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs)
  return dead.length > 0 || hasExpired ? cache.record.expireLeases(dead, nowMs) : []
}
