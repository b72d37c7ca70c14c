import type { NodeOutcome, NodesRequest } from '../../agent/calls/prepare-on-nodes.js'
import { describePreparedCopy, describePreparedElsewhere } from '../../cache/prepare/describe-prepared.js'
import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import { DscError, describeFailure } from '../../failure/dsc-error.js'
import { formatByteSize } from '../../model/byte-size.js'
import type { Dataset } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import type { LeaseRequest } from '../../model/lease.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { NodeOutcomeAnswer } from '../answers/cluster-answers.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc prepare --nodes` and `--all`: asks agents to stage in parallel, and shows the progress of each. */
export async function prepareManyNodes(
  context: CliContext,
  request: NodesRequest & { readonly nodes: readonly string[] | undefined },
): Promise<void> {
  const { dataset } = request
  const cluster = await context.openCluster()
  const outcomes = await cluster.prepareOnNodes(request, {
    signal: context.signal,
    onProgress: showNodes(context, dataset.name),
  })
  context.report.progress(undefined)
  const answer: AnswerOf<'prepare --nodes'> = {
    dataset: dataset.name,
    nodes: outcomes.map((outcome) => describeOutcome(outcome, request.lease)),
  }
  context.report.result(answer, () => alignColumns(outcomes.map(outcomeColumns)))
  throwFailures(outcomes)
}

/** One line with the progress of each node. */
export function showNodes(context: CliContext, dataset: string) {
  const steps = new Map<string, string>()
  return (node: string, progress: PrepareProgress) => {
    steps.set(node, describeStep(progress))
    const line = [...steps].map(([name, step]) => `${name} ${step}`).join(' · ')
    context.report.progress(`${dataset}: ${line}`)
  }
}

/** Throws if a node failed: NODES_FAILED, or the failure itself if only one node was asked. */
export function throwFailures(outcomes: readonly NodeOutcome[]): void {
  const failed = outcomes.filter((outcome) => outcome.outcome === 'failed')
  if (failed.length === 0) return
  const messages = failed.map(({ error }) => error.message).join('; ')
  if (failed.length === 1 && outcomes.length === 1) throw failed[0]!.error
  throw new DscError(
    'NODES_FAILED',
    `${failed.length} of ${formatCount(outcomes.length, 'node')} failed: ${messages}`,
    { hint: failed[0]!.error.hint },
  )
}

/** `dsc prepare --remote`: true if the dataset is used in its place, on another node. */
export async function prepareRemotely(
  context: CliContext,
  dataset: Dataset,
  lease: LeaseRequest,
): Promise<boolean> {
  const { node, door } = await context.config()
  if (door !== undefined)
    throw new DscError(
      'NOT_PERMITTED',
      '--remote prints a URL that opens with the token of the agents alone, which the service of this node keeps',
      { hint: `dsc prepare ${dataset.name}` },
    )
  const record = await context.openRecord()
  const here = await record.listCopies({ dataset: dataset.name, node, states: ['ready'] }, record.nowMs())
  if (here.some((copy) => !copy.stripe)) return false
  const { leaseRemoteCopy } = await import('../../cache/prepare/lease-remote-copy.js')
  const used = await leaseRemoteCopy(record, { node, dataset, lease })
  if (used === undefined) return false
  context.report.note(`${used.copy.dataset}: used from node ${used.copy.node}`)
  context.report.result(describePreparedElsewhere(used, lease), () => used.url)
  return true
}

function describeStep(progress: PrepareProgress): string {
  switch (progress.step) {
    case 'leaving-out':
      return 'leaves out'
    case 'listing':
      return `lists (${progress.objects})`
    case 'retrying':
      return 'tries again'
    case 'evicting':
      return 'evicts'
    case 'healing':
      return 'heals'
    case 'publishing':
      return 'writes through'
    case 'waiting':
    case 'downloading': {
      const share = progress.totalBytes === 0 ? 1 : progress.writtenBytes / progress.totalBytes
      return `${Math.min(100, Math.floor(share * 100))} %`
    }
  }
}

/** The outcome on one node, as an answer. */
export function describeOutcome(outcome: NodeOutcome, lease: LeaseRequest): NodeOutcomeAnswer {
  if (outcome.outcome === 'ready') return describePreparedCopy(outcome.prepared, lease)
  return { node: outcome.node, error: describeFailure(outcome.error) }
}

/** The outcome on one node, as a row of the table. */
export function outcomeColumns(outcome: NodeOutcome): readonly string[] {
  if (outcome.outcome === 'failed') return [outcome.node, 'failed', outcome.error.message]
  const { copy, downloaded } = outcome.prepared
  const origins = downloaded?.origins
  const fromPeers = Object.values(origins?.peerBytes ?? {}).reduce((sum, bytes) => sum + bytes, 0)
  const failed = Object.entries(origins?.failed ?? {})
    .map(([node, problem]) => `; ${node} ${problem}`)
    .join('')
  const from =
    origins === undefined
      ? 'was ready'
      : `${formatByteSize(origins.storeBytes)} from the store, ${formatByteSize(fromPeers)} from other nodes${failed}`
  return [outcome.node, copy.path, from]
}
