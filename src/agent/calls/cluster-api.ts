import type { LeaseRequest } from '../../model/lease.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { StripeRepairPlan } from '../stripes/plan-stripe-repair.js'
import type { AgentAccess } from './agent-client.js'
import type { NodeOutcome, NodesRequest, Ways } from './prepare-on-nodes.js'

/** Lost stripes of a dataset, and nodes for them. */
export interface RepairRequest {
  readonly dataset: string
  /** Default: their own nodes, or those with most space. */
  readonly onto: readonly string[]
  /** Held during the repair. */
  readonly lease: LeaseRequest
}

/**
 * The operations of commands on other nodes: with the token that this configuration names, or by the node's service,
 * which has it.
 */
export interface ClusterApi {
  /** Rejects as `prepareOnNodes`. `nodes`: undefined = every node whose agent reports. */
  prepareOnNodes(
    request: NodesRequest & { readonly nodes?: readonly string[] | undefined },
    ways: Ways,
  ): Promise<readonly NodeOutcome[]>
  /** Rejects as `prepareStripes`. */
  prepareStripes(
    request: NodesRequest & { readonly nodes: readonly string[] },
    ways: Ways,
  ): Promise<readonly NodeOutcome[]>
  /** Rejects as `repairStripes`. */
  repairStripes(
    request: RepairRequest,
    ways: Ways,
  ): Promise<{ readonly plan: StripeRepairPlan; readonly outcomes: readonly NodeOutcome[] }>
}

/** Asks agents with these credentials. What it needs is loaded when it is asked for. */
export function createOwnCluster(record: RecordStore, access: AgentAccess): ClusterApi {
  return {
    prepareOnNodes: async (request, ways) =>
      (await import('./prepare-on-nodes.js')).prepareOnNodes({ ...request, ...ways, record, access }),
    prepareStripes: async (request, ways) =>
      (await import('../stripes/prepare-stripes.js')).prepareStripes({ ...request, ...ways, record, access }),
    repairStripes: async ({ dataset, onto, lease }, ways) => {
      const { planRepair, repairStripes } = await import('../stripes/repair-stripes.js')
      const plan = await planRepair(record, dataset, onto)
      return { plan, outcomes: await repairStripes(plan, { ...ways, record, lease, access }) }
    },
  }
}
