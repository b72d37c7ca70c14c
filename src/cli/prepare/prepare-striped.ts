import type { NodeOutcome, NodesRequest } from '../../agent/calls/prepare-on-nodes.js'
import type { Copy } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { StripeOutcomeAnswer } from '../answers/cluster-answers.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'
import { describeOutcome, outcomeColumns, showNodes, throwFailures } from './prepare-elsewhere.js'

/** `dsc prepare --stripe`: asks agents to stage one stripe each; a job here reads the path of this node's stripe. */
export async function prepareStriped(
  context: CliContext,
  request: NodesRequest & { readonly nodes: readonly string[] },
): Promise<void> {
  const { dataset, nodes } = request
  const config = await context.config()
  const cluster = await context.openCluster()
  const outcomes = await cluster.prepareStripes(request, {
    signal: context.signal,
    onProgress: showNodes(context, dataset.name),
  })
  context.report.progress(undefined)
  const ready = outcomes.flatMap((outcome) => (outcome.outcome === 'ready' ? [outcome.prepared.copy] : []))
  const own = ready.find(({ node }) => node === config.node)
  const answer: AnswerOf<'prepare --stripe'> = {
    dataset: dataset.name,
    version: ready[0]?.version ?? null,
    node: config.node,
    path: own?.path ?? null,
    ...countPrepared(ready),
    stripes: describeStripes(outcomes, { nodes, lease: request.lease }),
  }
  context.report.result(answer, () => formatStripes(outcomes, nodes))
  throwFailures(outcomes)
}

/** One line for each stripe: `1/3`, its node, and its path or failure. */
export function formatStripes(outcomes: readonly NodeOutcome[], nodes: readonly string[]): string {
  return alignColumns(
    outcomes.map((outcome) => [
      `${nodes.indexOf(outcome.node) + 1}/${nodes.length}`,
      ...outcomeColumns(outcome),
    ]),
  )
}

/** The outcome of every stripe. */
export function describeStripes(
  outcomes: readonly NodeOutcome[],
  { nodes, lease }: { readonly nodes: readonly string[]; readonly lease: LeaseRequest },
): readonly StripeOutcomeAnswer[] {
  return outcomes.map((outcome) => ({
    index: nodes.indexOf(outcome.node),
    ...describeOutcome(outcome, lease),
  }))
}

/** Files and bytes of the version that are there: a node with a whole copy has the other nodes' stripes, too. */
export function countPrepared(copies: readonly Pick<Copy, 'files' | 'contentBytes' | 'stripe'>[]) {
  const whole = copies.find(({ stripe }) => stripe === undefined)
  const counted = whole ? [whole] : copies
  return {
    files: counted.reduce((total, { files }) => total + files, 0),
    contentBytes: counted.reduce((total, { contentBytes }) => total + contentBytes, 0),
  }
}
