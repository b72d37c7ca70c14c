import { Command } from 'commander'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { askParameterServer, formatParameterStatus } from './ask-parameter-server.js'
import { paramsServeCommand } from './params-serve.js'
import { paramsSetCommand } from './params-set.js'

/** `dsc params`: the central node that updates the parameters of a training job. */
export function paramsCommand(context: CliContext): Command {
  return new Command('params')
    .description('serve model parameters (experimental)')
    .addCommand(paramsServeCommand(context))
    .addCommand(paramsStatusCommand(context))
    .addCommand(paramsSetCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc params serve --mode sync --workers 4 --lr 0.1 --momentum 0.9 --checkpoint /scratch/job7\n  dsc params serve --mode ssp:3 --workers 8 --listen 0.0.0.0:7272 --token-file token\n  dsc params set --lr 0.01\n  dsc params status --server http://127.0.0.1:7272',
    )
}

/** `dsc params status`: asks a central node how far the job is. */
function paramsStatusCommand({ report, signal }: CliContext): Command {
  return new Command('status')
    .description('show the version, and the steps of each rank')
    .option('--server <url>', 'URL of the central node', argument(parseEndpoint), 'http://127.0.0.1:7272')
    .option('--token-file <file>', 'file with its token')
    .addHelpText('after', '\nExamples:\n  dsc params status --server http://127.0.0.1:7272')
    .action(async (options: { server: string; tokenFile?: string }) => {
      const status = await askParameterServer(options, { signal })
      report.result({ dsc: 1, ...status }, () => formatParameterStatus(status))
    })
}
