import { findLayouts, type StripedLayout } from '../../cache/status/find-layouts.js'
import { DscError } from '../../failure/dsc-error.js'
import type { CopyUse } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import { isAgentAlive } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { ClusterWays, NodeOutcome } from '../calls/prepare-on-nodes.js'
import { planStripeRepair, type StripeRepairPlan } from './plan-stripe-repair.js'
import { prepareStripes } from './prepare-stripes.js'

/** Reads the record and plans which stripes of a dataset to fetch again, and where. Changes nothing. */
export async function planRepair(
  record: RecordStore,
  dataset: string,
  onto: readonly string[],
): Promise<StripeRepairPlan> {
  const nowMs = record.nowMs()
  const layouts = findLayouts(await record.listCopies({ dataset }, nowMs))
  const reporting = (await record.listNodes()).filter((entry) => isAgentAlive(entry, nowMs))
  const alive = reporting.map(({ node, disk }) => ({ node, freeBytes: disk.freeBytes }))
  return planStripeRepair(dataset, layouts, { alive, onto })
}

/**
 * Fetches the missing stripes of a plan. Once their nodes have room, the record names them in the remaining stripes, so
 * that the next call continues a killed repair. Holders of the other stripes get leases on the new ones, too.
 */
export async function repairStripes(
  plan: StripeRepairPlan,
  options: ClusterWays & {
    /** Held while the repair runs. */
    readonly lease: LeaseRequest
  },
): Promise<readonly NodeOutcome[]> {
  const { layout, nodes, indexes } = plan
  const { record, lease, ...rest } = options
  const { dataset, version } = layout
  const [left] = await findStripes(record, layout)
  if (!left?.source) {
    throw new DscError('COPY_NOT_FOUND', `no source of ${dataset} is known to repair it from`, {
      hint: `dsc prepare ${dataset} --stripe ${nodes.join(',')}`,
    })
  }
  const outcomes = await prepareStripes({
    ...rest,
    record,
    lease,
    nodes,
    indexes,
    version,
    dataset: left.source,
    isRefresh: false,
    onReserved: async () => {
      const lost = indexes.map(
        (index) => `${index + 1}/${nodes.length} from ${layout.nodes[index]} to ${nodes[index]}`,
      )
      const move = { dataset, version, from: layout.nodes, to: nodes, reason: `stripe ${lost.join(', ')}` }
      if (nodes.join() !== layout.nodes.join()) await record.moveStripes(move, record.nowMs())
    },
  })
  for (const outcome of outcomes) {
    if (outcome.outcome === 'failed') continue
    const { copy, leaseId } = outcome.prepared
    await shareLeases(record, layout, copy.copyId)
    await record.releaseUses({ leaseId }, record.nowMs())
  }
  return outcomes
}

/** The copies behind the stripes that are there, including whole copies. */
async function findStripes(
  record: RecordStore,
  { dataset, stripes }: Pick<StripedLayout, 'dataset' | 'stripes'>,
): Promise<readonly CopyUse[]> {
  const ids = new Set(stripes.filter(({ state }) => state === 'ready').map(({ copyId }) => copyId))
  return (await record.listCopies({ dataset }, record.nowMs())).filter(({ copyId }) => ids.has(copyId))
}

/** Gives every holder of a stripe of the layout a lease on the repaired one, too. */
async function shareLeases(
  record: RecordStore,
  layout: Pick<StripedLayout, 'dataset' | 'stripes'>,
  copyId: string,
): Promise<void> {
  const ids = new Set((await findStripes(record, layout)).map((copy) => copy.copyId))
  const leases = (await record.listLeases({ dataset: layout.dataset })).filter(
    (lease) => ids.has(lease.copyId) && lease.purpose === 'use',
  )
  for (const { task, holder, expiresAtMs } of leases) {
    await record.leaseCopy({ copyId, purpose: 'use', lease: { task, holder, expiresAtMs } }, record.nowMs())
  }
}
