import { createHash } from 'node:crypto'
import type { LeaseRequest, PlacedLease } from '../../model/lease.js'

/** How long a copy is kept for a job that waits, without renewal, in ms. */
export const QUEUED_MS = 15 * 60_000
/** Longest name of a task that agents take. */
const MAX_TASK = 256

/** The task of a job that waits: of a pod, or of a workload of Kueue. The end of a name that is too long is a digest. */
export function formatQueuedTask(kind: 'pod' | 'workload', namespace: string, name: string): string {
  const task = `queued:${kind}:${namespace}/${name}`
  if (task.length <= MAX_TASK) return task
  const digest = createHash('sha256').update(task).digest('hex').slice(0, 16)
  return `${task.slice(0, MAX_TASK - digest.length - 1)}-${digest}`
}

/** Whether a controller holds this lease for a job that waits. */
export function isQueuedLease({ task, holder }: Pick<PlacedLease, 'task' | 'holder'>): boolean {
  return holder.kind === 'ttl' && task.startsWith('queued:')
}

/** The lease of a job that waits: it counts for the share of its namespace, and ends by itself if nobody renews it. */
export function leaseOfQueued(task: string, namespace: string, nowMs: number): LeaseRequest {
  return {
    task,
    holder: { kind: 'ttl' },
    expiresAtMs: nowMs + QUEUED_MS,
    parties: [`namespace:${namespace}`],
  }
}
