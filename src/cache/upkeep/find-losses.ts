import type { CopyUse } from '../../model/copy.js'
import { isLeaseLive, type Lease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { checkProcess } from '../../platform/processes.js'
import type { Cache } from '../cache.js'
import { listKept } from '../kept-copies.js'
import { findDeadLeases } from '../leases/find-dead-leases.js'

/** Datasets named in one query: an engine takes so many parameters. */
const MAX_DATASETS = 1000

/** Why something stays as it is, and the command that helps. */
export interface Obstacle {
  readonly reason: string
  readonly hint: string
}

/**
 * Finds the events that an undo cannot take back any more, and why, by their sequence number.
 *
 * | event    | lost when                                                                    |
 * |----------|------------------------------------------------------------------------------|
 * | evicted  | its files left this node's trash, or the dataset is here again                 |
 * | unlocked | its copy is gone                                                             |
 * | released | its copy is gone, the lease would have expired, or the holder is known to be |
 */
export async function findLosses(
  cache: Cache,
  events: readonly RecordEvent[],
): Promise<ReadonlyMap<number, Obstacle>> {
  const nowMs = cache.nowMs()
  const copies: CopyUse[] = []
  const datasets = [...new Set(events.map(({ dataset }) => dataset))]
  for (let from = 0; from < datasets.length; from += MAX_DATASETS) {
    const some = datasets.slice(from, from + MAX_DATASETS)
    copies.push(...(await cache.record.listCopies({ datasets: some }, nowMs)))
  }
  const copyIds = new Set(copies.map(({ copyId }) => copyId))
  const isHere = ({ node, state }: CopyUse) => node === cache.node && state !== 'evicting'
  const datasetsHere = new Set(copies.filter(isHere).map(({ dataset }) => dataset))
  const keptIds = new Set(listKept(cache.root).map(({ copyId }) => copyId))
  const leases = events.flatMap(({ kind, detail }) => (kind === 'released' ? [detail.lease as Lease] : []))
  const hasSlurm = leases.some(({ holder }) => holder.kind === 'slurm')
  const slurmJobs = hasSlurm ? await cache.listSlurmJobs() : undefined
  const dead = findDeadLeases(leases, { checkProcess, slurmJobs, nowMs })
  const deaths = new Map(dead.map(({ leaseId, reason }) => [leaseId, reason]))

  const explain = (event: RecordEvent): Obstacle | undefined => {
    const { kind, dataset, node, copyId } = event
    if (kind === 'evicted') {
      if (node !== cache.node) return undefined // only that node sees its trash
      if (datasetsHere.has(dataset)) return explainPresent(dataset)
      return keptIds.has(copyId ?? '') ? undefined : explainEmptied(dataset)
    }
    if (kind === 'released') {
      const lease = event.detail.lease as Lease
      const hint = `dsc prepare ${dataset}`
      if (!isLeaseLive(lease, nowMs))
        return { reason: `the lease of ${lease.task} on ${dataset} would have expired since`, hint }
      const death = deaths.get(lease.leaseId)
      if (death !== undefined) return { reason: `nothing would hold ${dataset}: ${death}`, hint }
    }
    return copyIds.has(copyId ?? '') ? undefined : explainGone(event)
  }
  return new Map(
    events.flatMap((event) => {
      const loss = explain(event)
      return loss ? [[event.sequence, loss]] : []
    }),
  )
}

/** The copy that was leased or locked is gone. */
export function explainGone({ dataset, node }: Pick<RecordEvent, 'dataset' | 'node'>): Obstacle {
  return { reason: `the copy of ${dataset} on ${node} is gone`, hint: `dsc prepare ${dataset}` }
}

/** The dataset has a copy here, so that the evicted one may not return. */
export function explainPresent(dataset: string): Obstacle {
  return { reason: `${dataset} is here again, or being staged`, hint: `dsc why ${dataset}` }
}

/** The files of an evicted copy are no longer in the trash. */
export function explainEmptied(dataset: string): Obstacle {
  return {
    reason: `the files of ${dataset} are gone: something needed their room`,
    hint: `dsc prepare ${dataset}`,
  }
}
