import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatBytes, parseBudget } from '../../memory/budget.js'
import { readPlan } from '../../memory/plan-file.js'
import { checkRun, readRunReport } from '../../memory/run-report.js'
import { formatCount } from '../../model/format-count.js'
import type { CliContext } from '../context.js'
import { memoryExplainCommand } from './memory-explain.js'
import { memoryPlanCommand } from './memory-plan.js'
import { memoryProfileCommand } from './memory-profile.js'
import { memorySimulateCommand } from './memory-simulate.js'
import { memoryWaysCommand } from './memory-ways.js'

/** `dsc memory`: from a profile of iteration 1 to a plan under a byte budget, and back to whether it held. */
export function memoryCommand(context: CliContext) {
  return new Command('memory')
    .addCommand(memoryProfileCommand(context))
    .addCommand(memoryWaysCommand(context))
    .addCommand(memoryPlanCommand(context))
    .addCommand(memoryExplainCommand(context))
    .addCommand(memorySimulateCommand(context))
    .addCommand(memoryVerifyCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory profile -- python train.py           writes memory.profile.json\n  dsc memory ways memory.profile.json --budget 24GiB\n  dsc memory plan memory.profile.json --budget 24GiB --svg step.svg\n  dsc memory explain memory.plan.json --profile memory.profile.json\n  dsc memory verify run.json --plan memory.plan.json',
    )
}

/** `dsc memory verify`: compares a run with the predictions of its plan. */
function memoryVerifyCommand({ report }: CliContext) {
  return new Command('verify')
    .description('compare a run with its plan; exit 10 if they differ')
    .argument('<run>', 'report by offload(plan, report="run.json")')
    .requiredOption('--plan <file>', 'a plan by `dsc memory plan`')
    .option('--tolerance <share>', 'permitted error of the peak', '5%')
    .addHelpText('after', '\nExamples:\n  dsc memory verify run.json --plan gpt.plan.json')
    .action(async (path, options) => {
      const tolerance = parseBudget(options.tolerance, '--tolerance')
      if (tolerance.kind !== 'share')
        throw new DscError('USAGE', `--tolerance ${options.tolerance} is not a share`, {
          hint: '--tolerance 5%',
        })
      const plan = await readPlan(options.plan)
      const run = await readRunReport(path)
      const checks = checkRun(plan, run, tolerance.share)
      const { device, steps, stepMs } = run
      report.result<'memory verify'>({ device, steps, stepMs, checks }, () =>
        [
          `${formatCount(run.steps, 'step')} on ${run.device}, ${run.plannedSteps} of them by the plan`,
          ...checks.map(({ name, predicted, measured, isFine }) => {
            const show = name.includes('bytes') || name.includes('budget') ? formatBytes : String
            return `${isFine ? 'ok    ' : 'DIFFERS'} ${name}: predicted ${show(predicted)}, measured ${show(measured)}`
          }),
          `step: predicted ${plan.predicted.stepMs} ms, measured ${run.stepMs ?? 'not timed'}${run.stepMs === null ? '' : ' ms'}`,
        ].join('\n'),
      )
      const wrong = checks.filter(({ isFine }) => !isFine)
      if (wrong.length > 0) {
        throw new DscError(
          'PLAN_MISMATCH',
          `${path} differs from its plan in: ${wrong.map(({ name }) => name).join(', ')}`,
          { hint: 'profile again, then plan with --feedback' },
        )
      }
    })
}
