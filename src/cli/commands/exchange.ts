import { Command } from 'commander'
import type { CliContext } from '../context.js'
import { exchangeBenchCommand } from './exchange-bench.js'
import { exchangePlanCommand } from './exchange-plan.js'
import { exchangeProbeCommand } from './exchange-probe.js'
import { exchangeServeCommand } from './exchange-serve.js'

/** `dsc exchange`: plans, measures and runs the exchange of gradients between ranks. */
export function exchangeCommand(context: CliContext) {
  return new Command('exchange')
    .addCommand(exchangePlanCommand(context))
    .addCommand(exchangeProbeCommand(context))
    .addCommand(exchangeServeCommand(context))
    .addCommand(exchangeBenchCommand(context))
    .addHelpText(
      'after',
      `
Examples:
  dsc exchange probe --hosts gpu-01,gpu-02 --out network.json
  dsc exchange plan --sizes sizes.json --profile network.json --ranks 8
  dsc exchange bench --ranks 4`,
    )
}
