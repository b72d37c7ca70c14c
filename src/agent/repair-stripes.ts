import { DscError } from '../failure/dsc-error.js'
import type { LeaseRequest } from '../model/lease.js'
import { isAgentAlive } from '../model/node.js'
import type { RecordStore } from '../records/record-store.js'
import { findLayouts, type StripedLayout } from '../stage/plan/find-layouts.js'
import { planStripeRepair, type StripeRepairPlan } from '../stage/plan/plan-stripe-repair.js'
import type { PrepareProgress } from '../stage/prepare-dataset.js'
import type { AgentAccess } from './agent-client.js'
import type { NodeOutcome } from './prepare-on-nodes.js'
import { prepareStripes } from './prepare-stripes.js'

/** Reads the record and plans which stripes of a dataset are to be fetched again, and where. Changes nothing. */
export async function planRepair(
  record: RecordStore,
  dataset: string,
  onto: readonly string[],
): Promise<StripeRepairPlan> {
  const nowMs = record.nowMs()
  const layouts = findLayouts(await record.listCopies({ dataset }, nowMs))
  const alive = (await record.listNodes()).filter((entry) => isAgentAlive(entry, nowMs))
  const nodes = alive.map(({ node, disk }) => ({ node, freeBytes: disk.freeBytes }))
  return planStripeRepair(dataset, layouts, nodes, onto)
}

/**
 * Fetches the missing stripes of a plan. Once their nodes have room, the record names them in the stripes that are
 * left, so that a repair that is killed goes on with the next call. Who uses the other stripes uses the new ones, too.
 */
export async function repairStripes(
  plan: StripeRepairPlan,
  options: {
    readonly record: RecordStore
    /** Held while the repair runs. */
    readonly lease: LeaseRequest
    readonly access: AgentAccess
    readonly onProgress: (node: string, progress: PrepareProgress) => void
    readonly signal: AbortSignal
  },
): Promise<readonly NodeOutcome[]> {
  const { layout, nodes, indexes } = plan
  const { record, lease, ...rest } = options
  const { dataset, version } = layout
  const [left] = (await findCopies(record, layout)).filter(({ state }) => state === 'ready')
  if (!left?.source) {
    throw new DscError('COPY_NOT_FOUND', `no source of ${dataset} is known to repair it from`, {
      hint: `dsc prepare ${dataset} --stripe ${nodes.join(',')}`,
    })
  }
  const outcomes = await prepareStripes({
    ...rest,
    ...{ record, lease, nodes, indexes, version, dataset: left.source, isRefresh: false },
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
    await shareLeases(record, { ...layout, nodes }, copy.copyId)
    await record.releaseUses({ leaseId }, record.nowMs())
  }
  return outcomes
}

function findCopies(record: RecordStore, { dataset, version }: Pick<StripedLayout, 'dataset' | 'version'>) {
  return record
    .listCopies({ dataset }, record.nowMs())
    .then((copies) => copies.filter((copy) => copy.stripe && copy.version === version))
}

/** Whoever holds a stripe of the layout holds the repaired one as well. */
async function shareLeases(
  record: RecordStore,
  layout: Pick<StripedLayout, 'dataset' | 'version' | 'nodes'>,
  copyId: string,
): Promise<void> {
  const members = (await findCopies(record, layout)).filter(
    (copy) => copy.stripe!.nodes.join() === layout.nodes.join(),
  )
  const ids = new Set(members.map((member) => member.copyId).filter((id) => id !== copyId))
  const leases = (await record.listLeases({ dataset: layout.dataset })).filter(
    (lease) => ids.has(lease.copyId) && lease.purpose === 'use',
  )
  for (const { task, holder, expiresAtMs } of leases) {
    await record.leaseCopy(copyId, 'use', { task, holder, expiresAtMs }, record.nowMs())
  }
}
