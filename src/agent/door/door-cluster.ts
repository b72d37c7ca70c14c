import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import type { ClusterApi } from '../calls/cluster-api.js'
import type { NodeOutcome } from '../calls/prepare-on-nodes.js'
import type { StripeRepairPlan } from '../stripes/plan-stripe-repair.js'
import { type DoorClient, knownFailureOf } from './door-client.js'
import type { SentOutcome } from './door-wire.js'

interface SentRepair {
  readonly plan: StripeRepairPlan
  readonly outcomes: readonly SentOutcome[]
}

type Ways = Parameters<ClusterApi['prepareOnNodes']>[1]

/** The `ClusterApi` that asks the node's service. */
export function createDoorCluster(client: DoorClient): ClusterApi {
  const ask = <Answer>(operation: string, asked: object, { signal, onProgress }: Ways) =>
    client.ask<Answer, PrepareProgress & { readonly node: string }>(operation, asked, {
      signal,
      onProgress: ({ node, ...progress }) => onProgress(node, progress as PrepareProgress),
    })
  const prepare = async (operation: string, asked: object, ways: Ways) =>
    (await ask<readonly SentOutcome[]>(operation, asked, ways)).map(readOutcome)
  return {
    prepareOnNodes: (request, ways) => prepare('prepareOnNodes', request, ways),
    prepareStripes: (request, ways) => prepare('prepareStripes', request, ways),
    repairStripes: async (request, ways) => {
      const { plan, outcomes } = await ask<SentRepair>('repairStripes', request, ways)
      return { plan, outcomes: outcomes.map(readOutcome) }
    },
  }
}

function readOutcome(sent: SentOutcome): NodeOutcome {
  return sent.outcome === 'ready' ? sent : { ...sent, error: knownFailureOf(sent.error) }
}
