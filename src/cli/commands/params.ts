import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { argument, parseEndpoint, parseRate } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { askParameterServer, formatParameterStatus } from './ask-parameter-server.js'
import { paramsServeCommand } from './params-serve.js'

/** `dsc params`: the central node that updates the parameters of a training job. */
export function paramsCommand(context: CliContext) {
  return new Command('params')
    .addCommand(paramsServeCommand(context))
    .addCommand(paramsStatusCommand(context))
    .addCommand(paramsSetCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc params serve --mode sync --workers 4 --lr 0.1 --momentum 0.9 --checkpoint /scratch/job7\n  dsc params serve --mode ssp:3 --workers 8 --listen 0.0.0.0:7272 --token-file token\n  dsc params set --lr 0.01\n  dsc params status --server http://127.0.0.1:7272',
    )
}

/** `dsc params status`: asks a central node how far the job is. */
function paramsStatusCommand({ report, signal }: CliContext) {
  return new Command('status')
    .description('show the version, and the steps of each rank')
    .option('--server <url>', 'URL of the central node', argument(parseEndpoint), 'http://127.0.0.1:7272')
    .option('--token-file <file>', 'file with its token')
    .addHelpText('after', '\nExamples:\n  dsc params status --server http://127.0.0.1:7272')
    .action(async (options) => {
      const status = await askParameterServer(options, { signal })
      report.result(status, () => formatParameterStatus(status))
    })
}

/** `dsc params set`: changes how a central node updates, starting with its next update. */
function paramsSetCommand({ report, signal }: CliContext) {
  return new Command('set')
    .description('change the optimizer of a running job')
    .option('--lr <rate>', 'learning rate', argument(parseRate))
    .option('--weight-decay <rate>', 'weight decay', argument(parseRate))
    .option('--momentum <share>', 'momentum of sgd', argument(parseRate))
    .option('--clip-norm <norm>', 'largest norm of the gradient; 0: no clipping', argument(parseRate))
    .option('--server <url>', 'URL of the central node', argument(parseEndpoint), 'http://127.0.0.1:7272')
    .option('--token-file <file>', 'file with its token')
    .option('--job <name>', 'name of the job (default: user-<your number>)')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc params set --lr 0.01\n  dsc params set --clip-norm 1 --server http://gpu-1:7272 --token-file job.token',
    )
    .action(async (options) => {
      const { lr: learningRate, clipNorm: maxNorm, weightDecay, momentum } = options
      const change = { learningRate, weightDecay, momentum, maxNorm }
      if (Object.values(change).every((value) => value === undefined))
        throw new DscError('USAGE', 'nothing to change', { hint: '--lr 0.01' })
      const status = await askParameterServer(options, { change, signal, job: options.job })
      report.result(status, () => formatParameterStatus(status))
    })
}
