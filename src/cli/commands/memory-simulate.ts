import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { type Budget, formatBytes, parseBudget, resolveBudget } from '../../memory/budget.js'
import { simulatePlan } from '../../memory/plan/simulate-plan.js'
import { readPlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import { profileOfPlan } from '../../memory/step/recompute-blocks.js'
import { formatCount } from '../../model/format-count.js'
import type { MemorySimulateAnswer } from '../answers/memory-answers.js'
import type { CliContext } from '../context.js'

/** `dsc memory simulate`: runs a plan on a simulated device, with faults if asked. */
export function memorySimulateCommand({ report }: CliContext): Command {
  return new Command('simulate')
    .description('run a plan on a simulated device; exit 10 if it breaks')
    .argument('<plan>', 'a plan by `dsc memory plan`')
    .requiredOption('--profile <file>', 'the profile of the plan')
    .option(
      '--capacity <size>',
      'device memory, or a share of the peak (default: the budget)',
      (text: string) => parseBudget(text, '--capacity'),
    )
    .option('--slow-copies <factor>', 'slow down every copy by this factor', parseFactor('--slow-copies'), 1)
    .option(
      '--slow-compute <factor>',
      'slow down every layer by this factor',
      parseFactor('--slow-compute'),
      1,
    )
    .option('--fail-every <n>', 'fail every n-th copy once', parseFactor('--fail-every'))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory simulate gpt.plan.json --profile gpt.profile.json --slow-copies 2 --fail-every 10',
    )
    .action(async (path: string, options: SimulateOptions) => {
      const { profile, hash } = await readProfile(options.profile)
      const plan = await readPlan(path, hash)
      const capacityBytes = options.capacity
        ? resolveBudget(options.capacity, () => plan.predicted.unplannedPeakBytes)
        : plan.budgetBytes
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
      const times = {
        stepMs: result.stepUs / 1000,
        computeMs: result.computeUs / 1000,
        stallMs: result.stallUs / 1000,
      }
      const answer: MemorySimulateAnswer = {
        dsc: 1,
        capacityBytes,
        ...times,
        peakBytes,
        peakAt,
        movedBytes,
        copies,
        violations,
      }
      report.result(answer, () =>
        [
          `peak ${formatBytes(result.peakBytes)} of ${formatBytes(capacityBytes)} at ${result.peakAt}`,
          `step ${(result.stepUs / 1000).toFixed(3)} ms, of which ${(result.stallUs / 1000).toFixed(3)} ms stall; ${formatCount(result.copies, 'copy', 'copies')}, ${formatBytes(result.movedBytes)}`,
          ...result.violations.map((violation) => `broken: ${violation}`),
        ].join('\n'),
      )
      if (result.violations.length > 0) {
        throw new DscError(
          'PLAN_MISMATCH',
          `the plan breaks ${result.violations.length} promises, first: ${result.violations[0]}`,
          { hint: 'plan again with the capacity as --budget' },
        )
      }
    })
}

interface SimulateOptions {
  readonly profile: string
  readonly capacity?: Budget
  readonly slowCopies: number
  readonly slowCompute: number
  readonly failEvery?: number
}

function parseFactor(option: string): (text: string) => number {
  return (text) => {
    const factor = Number(text)
    if (factor > 0 && Number.isFinite(factor)) return factor
    throw new DscError('USAGE', `${option} ${text} is not a positive number`, { hint: `${option} 2` })
  }
}
