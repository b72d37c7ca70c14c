import { z } from 'zod'
import { describeFailure } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { createOwnCluster } from '../calls/cluster-api.js'
import { fields, flag, text, texts, whole } from '../calls/fields.js'
import type { NodeOutcome } from '../calls/prepare-on-nodes.js'
import { datasetFields, findReadable, hideVictims, judgeAsked, placeLease } from './answer-staging.js'
import { type DoorCall, operation, requireReader, requireRight } from './door-call.js'
import type { SentOutcome } from './door-wire.js'

const elsewhere = {
  dataset: datasetFields,
  lease: z.unknown().optional(),
  isRefresh: flag.default(false),
  isPrefetch: flag.default(false),
  bandwidthBytesPerSecond: whole.optional(),
}

/** The operations on other nodes, whose agents believe the token of the service. */
export const CLUSTER_OPERATIONS = {
  prepareOnNodes: operation(
    fields({ ...elsewhere, nodes: texts.optional() }),
    { takes: 'stagings', isLease: true },
    async (call, input) =>
      describe(await openCluster(call).prepareOnNodes(await placeRequest(call, input), waysOf(call))),
  ),
  prepareStripes: operation(
    fields({ ...elsewhere, nodes: texts }),
    { takes: 'stagings', isLease: true },
    async (call, input) =>
      describe(await openCluster(call).prepareStripes(await placeRequest(call, input), waysOf(call))),
  ),
  repairStripes: operation(
    fields({ dataset: text, onto: texts, lease: z.unknown().optional() }),
    { right: { kind: 'upkeep', of: 'repair copies' }, takes: 'stagings' },
    async (call, { lease, ...asked }) => {
      await requireReader(call, asked.dataset)
      const request = { ...asked, lease: placeLease(call, lease) }
      const { plan, outcomes } = await openCluster(call).repairStripes(request, waysOf(call))
      return { plan, outcomes: describe(outcomes) }
    },
  ),
}

/** The dataset as the service knows it, for other nodes to stage. Rejects with NOT_PERMITTED. */
async function placeRequest<Asked extends { readonly dataset: Dataset; readonly lease?: unknown }>(
  call: DoorCall,
  asked: Asked & { readonly bandwidthBytesPerSecond?: number | undefined },
) {
  const known = await findReadable(call, asked.dataset.name)
  const { dataset, isDeclared } = judgeAsked(call, asked.dataset, { known, own: undefined })
  const isPaced = asked.bandwidthBytesPerSecond !== undefined
  requireRight(call, { kind: 'prepare-elsewhere', isDeclared, isPaced })
  return { ...asked, dataset, lease: placeLease(call, asked.lease) }
}

function openCluster(call: DoorCall) {
  const { cache, access } = call.service
  return createOwnCluster(cache.record, access ?? { token: undefined, ca: undefined })
}

function waysOf(call: DoorCall) {
  const { signal, onProgress } = call
  return {
    signal,
    onProgress: (node: string, progress: Parameters<ReturnType<typeof hideVictims>>[0]) =>
      hideVictims({ ...call, onProgress: (shown) => onProgress({ ...shown, node }) })(progress),
  }
}

function describe(outcomes: readonly NodeOutcome[]): readonly SentOutcome[] {
  return outcomes.map((outcome) =>
    outcome.outcome === 'ready' ? outcome : { ...outcome, error: describeFailure(outcome.error) },
  )
}
