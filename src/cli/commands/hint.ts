import { Command } from 'commander'
import { resolveDataset } from '../../library/resolve-dataset.js'
import { rankHints } from '../../policy/rank-hints.js'
import type { CliContext } from '../context.js'

/** `dsc hint`: where a job would find its datasets. */
export function hintCommand(context: CliContext): Command {
  return new Command('hint')
    .description('say which nodes have a dataset, so that a scheduler can prefer them')
    .argument('<datasets...>', 'datasets that the job will use')
    .option('--prefer', 'print an option for sbatch instead: --prefer=gpu-01|gpu-02, or nothing')
    .addHelpText(
      'after',
      '\nWith --prefer each node needs its own name among its features (slurm.conf: NodeName=gpu-01 Features=gpu-01).\nThe job runs elsewhere when those nodes are busy.\n\nExamples:\n  dsc hint flowers\n  sbatch $(dsc hint flowers --prefer) job.sh',
    )
    .action(async (names: readonly string[], options: { readonly prefer?: true }) => {
      const record = await context.openRecord()
      const datasets = []
      for (const name of names) datasets.push((await resolveDataset(context, name)).name)
      const copies = []
      for (const dataset of datasets) {
        copies.push(...(await record.listCopies({ dataset }, record.nowMs())))
      }
      const hints = rankHints(datasets, copies)
      context.report.result({ datasets, nodes: hints }, () => {
        if (!options.prefer) {
          return hints.length === 0
            ? 'no node has any of it'
            : hints.map(({ node, ready, staging }) => `${node}  ${describe(ready, staging)}`).join('\n')
        }
        const best = hints.filter(({ ready }) => ready.length === hints[0]?.ready.length && ready.length > 0)
        return best.length === 0 ? '' : `--prefer=${best.map(({ node }) => node).join('|')}`
      })
    })
}

function describe(ready: readonly string[], staging: readonly string[]): string {
  const parts = []
  if (ready.length > 0) parts.push(`ready: ${ready.join(', ')}`)
  if (staging.length > 0) parts.push(`being staged: ${staging.join(', ')}`)
  return parts.join('; ')
}
