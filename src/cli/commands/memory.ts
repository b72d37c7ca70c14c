import { Command } from 'commander'
import type { CliContext } from '../context.js'
import { memoryExplainCommand } from './memory-explain.js'
import { memoryPlanCommand } from './memory-plan.js'
import { memoryProfileCommand } from './memory-profile.js'
import { memorySimulateCommand } from './memory-simulate.js'
import { memoryVerifyCommand } from './memory-verify.js'
import { memoryWaysCommand } from './memory-ways.js'

/** `dsc memory`: from a profile of iteration 1 to a plan under a byte budget, and back to whether it held. */
export function memoryCommand(context: CliContext): Command {
  return new Command('memory')
    .description('plan GPU and host memory (experimental)')
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
