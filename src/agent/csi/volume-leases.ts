import type { Cache } from '../../cache/cache.js'
import type { LeaseRequest, PlacedLease } from '../../model/lease.js'
import type { VolumeNote } from './volume-notes.js'
import type { Pod } from './volume-request.js'

/** The part of a cache that these functions need. */
export type LeaseCache = Pick<Cache, 'record' | 'node' | 'nowMs'>

/** The lease of a pod on a copy: it lasts as long as kubelet runs the pod, which this agent sees. */
export function leaseOfPod({ uid, namespace, name }: Pod): LeaseRequest {
  return {
    task: `pod:${namespace}/${name}`,
    holder: { kind: 'pod', uid },
    expiresAtMs: null,
    parties: [`namespace:${namespace}`],
  }
}

/** The namespace of the pod whose volume takes this lease; undefined for any other lease. */
export function findPodNamespace({ holder, task }: Pick<PlacedLease, 'holder' | 'task'>): string | undefined {
  return holder.kind === 'pod' ? /^pod:([^/]+)\/./.exec(task)?.[1] : undefined
}

/** Leases the mounted copy of a volume again, or renews its lease. False: the copy is no longer ready. */
export async function keepLease(cache: LeaseCache, { copyId, pod }: VolumeNote): Promise<boolean> {
  if (copyId === undefined) return false
  const request = { copyId, purpose: 'use', lease: leaseOfPod(pod) } as const
  return (await cache.record.leaseCopy(request, cache.nowMs())) !== undefined
}

/** Ends the leases that a pod has on the copies of a volume's dataset, unless they are needed when their turn comes. */
export async function endLeases(
  cache: LeaseCache,
  note: VolumeNote,
  areNeeded: () => boolean,
): Promise<void> {
  const leases = await cache.record.listLeases({ node: cache.node, dataset: note.dataset })
  for (const lease of leases)
    if (isLeaseOf(note, lease) && !areNeeded())
      await cache.record.releaseUses({ leaseId: lease.leaseId }, cache.nowMs())
}

/** Whether the lease is the one that the pod has because of this volume, or of another one with the same dataset. */
export function isLeaseOf({ dataset, pod }: VolumeNote, lease: PlacedLease): boolean {
  const { holder } = lease
  return (
    lease.dataset === dataset &&
    holder.kind === 'pod' &&
    holder.uid === pod.uid &&
    lease.task === leaseOfPod(pod).task
  )
}
