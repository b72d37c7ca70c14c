import { Command } from 'commander'
import type { CliContext } from '../context.js'
import { exchangePlanCommand } from './exchange-plan.js'

/** `dsc exchange`: plans, measures and runs the exchange of gradients between ranks. */
export function exchangeCommand(context: CliContext): Command {
  return new Command('exchange')
    .description('plan, measure and run the exchange of gradients between ranks')
    .addCommand(exchangePlanCommand(context))
}
