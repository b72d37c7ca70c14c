import { Command, Option } from 'commander'
import { findParties } from '../../cache/leases/find-parties.js'
import { listSlurmFeatures } from '../../cache/leases/slurm-queue.js'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { findOwnShares, type OwnShare } from '../../cache/status/find-own-shares.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatAffinity } from '../../policy/prefer-nodes.js'
import { findBestNodes, type NodeHint, rankHints } from '../../policy/rank-hints.js'
import { formatPercent } from '../../tui/view/text/format-cells.js'
import type { CliContext } from '../context.js'

const MAX_NAMED = 5

/** `dsc hint`: where a job would find its datasets. */
export function hintCommand(context: CliContext) {
  return new Command('hint')
    .argument('<datasets...>', 'datasets that the job uses')
    .option('--prefer', 'print an option for sbatch: --prefer=gpu-01|gpu-02')
    .addOption(
      new Option('--affinity', 'print a nodeAffinity for pods of Kubernetes, in JSON').conflicts('prefer'),
    )
    .addHelpText(
      'after',
      '\n--prefer lists only nodes that have their name as a Slurm feature (slurm.conf: NodeName=gpu-01 Features=gpu-01).\nThe job runs elsewhere if they are busy.\n\nExamples:\n  dsc hint flowers\n  sbatch $(dsc hint flowers --prefer) job.sh\n  echo "nodeAffinity: $(dsc hint flowers --affinity)"',
    )
    .action(async (names, options) => {
      const record = await context.openRecord()
      const datasets = []
      for (const name of names) datasets.push((await resolveDataset(context, name)).name)
      const copies = []
      for (const dataset of datasets) {
        copies.push(...(await record.listCopies({ dataset }, record.nowMs())))
      }
      const hints = rankHints(datasets, copies)
      const prefer = options.prefer ? await formatPrefer(context, hints) : undefined
      const affinity = options.affinity && formatAffinity(findBestNodes(hints))
      const nodes = await record.listNodes()
      const all = nodes.flatMap(({ policy }) => policy.shares ?? [])
      const shares = await findOwnShares(record, nodes, {
        parties: findParties({ environment: context.environment, shares: all }),
        preferred: hints.map(({ node }) => node),
      })
      context.report.result<'hint'>(
        { datasets, nodes: hints, prefer, affinity, shares },
        () => prefer ?? affinity ?? [formatHints(hints), ...formatOwnShares(shares)].join('\n'),
      )
    })
}

function formatHints(hints: readonly NodeHint[]): string {
  if (hints.length === 0) return 'no node has any of it'
  return hints.map((hint) => `${hint.node}  ${describe(hint)}`).join('\n')
}

/** The remaining space in the caller's shares, for a job whose dataset must be downloaded first. */
function formatOwnShares(shares: readonly OwnShare[]): readonly string[] {
  if (shares.length === 0) return []
  const rows = shares.slice(0, MAX_NAMED).map(({ node, party, leftBytes, guaranteedBytes }) => {
    if (party === null) return `${node}  no share of yours: what you stage there, others may take back`
    return `${node}  ${party} has ${formatByteSize(leftBytes)} left of ${formatByteSize(guaranteedBytes)}`
  })
  const hidden = shares.length - rows.length
  return ['', 'of your shares:', ...rows, ...(hidden > 0 ? [`and ${hidden} nodes more: --json`] : [])]
}

/** The option for sbatch, or nothing if it would not help. */
async function formatPrefer(context: CliContext, hints: readonly NodeHint[]): Promise<string> {
  const nodes = findBestNodes(hints)
  const features = nodes.length > 0 ? await listSlurmFeatures() : undefined
  const known = features ? nodes.filter((node) => features.has(node)) : nodes
  if (known.length < nodes.length) {
    const lacking = nodes.filter((node) => !known.includes(node))
    context.report.note(
      `left out, as Slurm knows no feature of their name: ${lacking.slice(0, MAX_NAMED).join(', ')}${lacking.length > MAX_NAMED ? ', …' : ''}; dsc hint --help`,
    )
  }
  return known.length === 0 ? '' : `--prefer=${known.join('|')}`
}

function describe({ ready, staging, readyShare }: NodeHint): string {
  const parts = []
  const share = readyShare < ready.length ? ` (${formatPercent(readyShare, ready.length)} of it)` : ''
  if (ready.length > 0) parts.push(`ready: ${ready.join(', ')}${share}`)
  if (staging.length > 0) parts.push(`being staged: ${staging.join(', ')}`)
  return parts.join('; ')
}
