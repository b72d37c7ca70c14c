import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatBytes, parseBudget, resolveBudget } from '../../memory/budget.js'
import { simulatePlan } from '../../memory/plan/simulate-plan.js'
import { readPlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import { profileOfPlan } from '../../memory/step/recompute-blocks.js'
import { formatCount } from '../../model/format-count.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseCount, parsePositive } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'

/** `dsc memory simulate`: runs a plan on a simulated device, with faults if asked. */
export function memorySimulateCommand({ report }: CliContext) {
  return new Command('simulate')
    .description('run a plan on a simulated device; exit 10 if it breaks')
    .argument('<plan>', 'a plan by `dsc memory plan`')
    .requiredOption('--profile <file>', 'the profile of the plan')
    .option(
      '--capacity <size>',
      'device memory, or a share of the peak (default: the budget)',
      (text: string) => parseBudget(text, '--capacity'),
    )
    .option('--slow-copies <factor>', 'slow down every copy by this factor', argument(parsePositive), 1)
    .option('--slow-compute <factor>', 'slow down every layer by this factor', argument(parsePositive), 1)
    .option('--fail-every <n>', 'fail every n-th copy once', argument(parseCount))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory simulate gpt.plan.json --profile gpt.profile.json --slow-copies 2 --fail-every 10',
    )
    .action(async (path, options) => {
      const { profile, hash } = await readProfile(options.profile)
      const plan = await readPlan(path, hash)
      const capacityBytes = options.capacity ? resolveBudget(options.capacity, profile) : plan.budgetBytes
      const { failEvery } = options
      const result = simulatePlan(profileOfPlan(profile, plan), plan, {
        capacityBytes,
        faults: {
          copySlowdown: () => options.slowCopies,
          computeSlowdown: () => options.slowCompute,
          copyFailures: (copy) => (failEvery && copy % failEvery === failEvery - 1 ? 1 : 0),
        },
      })
      const { peakBytes, peakAt, movedBytes, copies, violations } = result
      const answer: AnswerOf<'memory simulate'> = {
        capacityBytes,
        stepMs: result.stepUs / 1000,
        computeMs: result.computeUs / 1000,
        stallMs: result.stallUs / 1000,
        peakBytes,
        peakAt,
        movedBytes,
        copies,
        violations,
      }
      report.result(answer, () =>
        [
          `peak ${formatBytes(peakBytes)} of ${formatBytes(capacityBytes)} at ${peakAt}`,
          `step ${answer.stepMs.toFixed(3)} ms, of which ${answer.stallMs.toFixed(3)} ms stall; ${formatCount(copies, 'copy', 'copies')}, ${formatBytes(movedBytes)}`,
          ...violations.map((violation) => `broken: ${violation}`),
        ].join('\n'),
      )
      if (violations.length > 0) {
        throw new DscError(
          'PLAN_MISMATCH',
          `the plan breaks ${violations.length} promises, first: ${violations[0]}`,
          { hint: 'plan again with the capacity as --budget' },
        )
      }
    })
}
