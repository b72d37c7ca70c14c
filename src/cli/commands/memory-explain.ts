import { Command } from 'commander'
import { formatBytes } from '../../memory/budget.js'
import { writeNamedFile } from '../../memory/named-file.js'
import { drawPlan, explainPlan } from '../../memory/plan/explain.js'
import { readPlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import type { CliContext } from '../context.js'

/** `dsc memory explain`: for every tensor, why it moves or stays. */
export function memoryExplainCommand({ report }: CliContext): Command {
  return new Command('explain')
    .description('say for every tensor why it moves or stays')
    .argument('<plan>', 'what `dsc memory plan` wrote')
    .requiredOption('--profile <file>', 'the profile it was planned from')
    .option('--all', 'small tensors too', false)
    .option('--svg <file>', 'draw memory over the step, planned and unplanned')
    .addHelpText('after', '\nExamples:\n  dsc memory explain gpt.plan.json --profile gpt.profile.json')
    .action(async (path: string, options: { profile: string; all: boolean; svg?: string }) => {
      const { profile, hash } = await readProfile(options.profile)
      const plan = await readPlan(path, hash)
      const rows = explainPlan(profile, plan)
      if (options.svg) await writeNamedFile(options.svg, 'picture', drawPlan(profile, plan))
      report.result({ tensors: rows }, () => {
        const shown = rows.filter(({ bytes }) => options.all || bytes >= plan.options.smallestBytes)
        const lines = shown.map(
          ({ decision, bytes, kind, name, producer, storage, why }) =>
            `${decision.padEnd(6)} ${formatBytes(bytes).padStart(11)}  ${kind.padEnd(12)} #${storage} of ${name ?? producer}: ${why}`,
        )
        const hidden = rows.length - shown.length
        return [...lines, ...(hidden > 0 ? [`${hidden} small tensors stay; --all shows them`] : [])].join(
          '\n',
        )
      })
    })
}
