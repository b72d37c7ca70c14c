import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatBytes, parseBudget } from '../../memory/budget.js'
import { readPlan } from '../../memory/plan-file.js'
import { checkRun, readRunReport } from '../../memory/run-report.js'
import { formatCount } from '../../model/format-count.js'
import type { MemoryVerifyAnswer } from '../answers/memory-answers.js'
import type { CliContext } from '../context.js'

/** `dsc memory verify`: compares a run with the predictions of its plan. */
export function memoryVerifyCommand({ report }: CliContext): Command {
  return new Command('verify')
    .description('compare a run with its plan; exit 10 if they differ')
    .argument('<run>', 'report by offload(plan, report="run.json")')
    .requiredOption('--plan <file>', 'a plan by `dsc memory plan`')
    .option('--tolerance <share>', 'permitted error of the peak', '5%')
    .addHelpText('after', '\nExamples:\n  dsc memory verify run.json --plan gpt.plan.json')
    .action(async (path: string, options: { plan: string; tolerance: string }) => {
      const tolerance = parseBudget(options.tolerance, '--tolerance')
      if (tolerance.kind !== 'share')
        throw new DscError('USAGE', `--tolerance ${options.tolerance} is not a share`, {
          hint: '--tolerance 5%',
        })
      const plan = await readPlan(options.plan)
      const run = await readRunReport(path)
      const checks = checkRun(plan, run, tolerance.share)
      const { device, steps, stepMs } = run
      const answer: MemoryVerifyAnswer = { dsc: 1, device, steps, stepMs, checks }
      report.result(answer, () =>
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
