import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import { parseRate } from '../arguments/parse-rate.js'
import type { CliContext } from '../context.js'
import { askParameterServer, formatParameterStatus } from './ask-parameter-server.js'

/** `dsc params set`: changes how a central node updates, starting with its next update. */
export function paramsSetCommand({ report, signal }: CliContext): Command {
  return new Command('set')
    .description('change the optimizer of a running job')
    .option('--lr <rate>', 'learning rate', parseRate)
    .option('--weight-decay <rate>', 'weight decay', parseRate)
    .option('--momentum <share>', 'momentum of sgd', parseRate)
    .option('--clip-norm <norm>', 'largest norm of the gradient; 0: no clipping', parseRate)
    .option('--server <url>', 'URL of the central node', argument(parseEndpoint), 'http://127.0.0.1:7272')
    .option('--token-file <file>', 'file with its token')
    .option('--job <name>', 'name of the job (default: user-<your number>)')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc params set --lr 0.01\n  dsc params set --clip-norm 1 --server http://gpu-1:7272 --token-file job.token',
    )
    .action(async (options: SetOptions) => {
      const { lr: learningRate, clipNorm: maxNorm, weightDecay, momentum } = options
      const change = { learningRate, weightDecay, momentum, maxNorm }
      if (Object.values(change).every((value) => value === undefined))
        throw new DscError('USAGE', 'nothing to change', { hint: '--lr 0.01' })
      const status = await askParameterServer(options, {
        change,
        signal,
        job: options.job,
      })
      report.result({ dsc: 1, ...status }, () => formatParameterStatus(status))
    })
}

interface SetOptions {
  readonly server: string
  readonly tokenFile?: string
  readonly job?: string | undefined
  readonly lr?: number
  readonly weightDecay?: number
  readonly momentum?: number
  readonly clipNorm?: number
}
