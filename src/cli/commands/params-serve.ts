import { Command, Option } from 'commander'
import { atEnd } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { CentralNode } from '../../memory/params/central-node.js'
import { readCheckpoint } from '../../memory/params/checkpoint.js'
import { checkSettings, type OptimizerSettings } from '../../memory/params/plan/optimizer-settings.js'
import {
  formatUpdateMode,
  type LostPolicy,
  parseLostPolicy,
  parseUpdateMode,
} from '../../memory/params/plan/update-mode.js'
import { serveParameters } from '../../memory/params/serve-parameters.js'
import { requireTimer } from '../../model/duration.js'
import { formatCount } from '../../model/format-count.js'
import { type HostPort, parseHostPort } from '../../model/host-port.js'
import { untilAborted } from '../../platform/poll.js'
import { asUsageError, cannotListen } from '../arguments/as-usage-error.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseCount, parseRate } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { readToken } from './exchange-serve.js'

const declare = () =>
  new Command('serve')
    .description('run the central node; it continues from its checkpoint')
    .requiredOption('--mode <mode>', 'sync, ssp:<steps> or async', parseUpdateMode)
    .requiredOption('--workers <n>', 'ranks of the job', argument(parseCount))
    .addOption(
      new Option('--listen <host:port>', 'address to listen on; port 0 is a free one')
        .argParser(argument((raw) => parseHostPort(raw)))
        .default({ host: '127.0.0.1', port: 7272 } satisfies HostPort, '127.0.0.1:7272'),
    )
    .option('--token-file <file>', 'file with the token; required beyond loopback')
    .option('--job <name>', 'name of the job (default: user-<your number>)')
    .addOption(new Option('--optimizer <name>', 'optimizer').choices(['sgd', 'adamw']).default('sgd'))
    .option('--lr <rate>', 'learning rate (default: 0.01, adamw: 0.001)', argument(parseRate))
    .option('--momentum <share>', 'momentum of sgd (default: 0)', argument(parseRate))
    .option('--nesterov', 'Nesterov momentum of sgd')
    .option('--betas <shares>', 'decay of the means of adamw (default: 0.9,0.999)', argument(parseBetas))
    .option('--eps <number>', 'epsilon of adamw (default: 1e-8)', argument(parseRate))
    .option('--weight-decay <rate>', 'weight decay (default: 0, adamw: 0.01)', argument(parseRate))
    .option('--clip-norm <norm>', 'largest norm of the gradient', argument(parseRate))
    .addOption(new Option('--reduce <how>', 'over ranks').choices(['mean', 'sum']).default('mean'))
    .addOption(
      new Option('--on-lost <policy>', 'if a rank is lost: abort, or quorum:<ranks>')
        .argParser(parseLostPolicy)
        .default({ kind: 'abort' } satisfies LostPolicy, 'abort'),
    )
    .option(
      '--lost-after <seconds>',
      'how long to wait for a rank',
      argument((raw) => requireTimer(1000 * parseRate(raw), raw) / 1000),
      60,
    )
    .option('--checkpoint <folder>', 'keep checkpoints here')
    .option('--checkpoint-every <versions>', 'versions between checkpoints', argument(parseCount), 1)
    .addHelpText(
      'after',
      '\nExamples:\n  dsc params serve --mode sync --workers 4 --lr 0.1 --momentum 0.9 --checkpoint /scratch/job7\n  dsc params serve --mode sync --workers 2 --optimizer adamw --lr 3e-4 --clip-norm 1\n  dsc params serve --mode ssp:3 --workers 8 --listen 0.0.0.0:7272 --token-file job.token',
    )

type ServeOptions = OptionsOf<typeof declare>

/** `dsc params serve`: runs the central node until it is stopped. */
export function paramsServeCommand(context: CliContext) {
  return declare().action((options) => serve(context, options))
}

async function serve({ report, signal }: CliContext, options: ServeOptions): Promise<void> {
  const { host, port } = options.listen
  const token = await readToken(options.tokenFile)
  const folder = options.checkpoint
  const unusable = { message: `cannot use the folder ${folder}`, hint: 'give --checkpoint another folder' }
  const checkpoint =
    folder === undefined ? undefined : await asUsageError(unusable, () => readCheckpoint(folder))
  const node = new CentralNode(
    {
      mode: options.mode,
      workers: options.workers,
      optimizer: describeOptimizer(options),
      isMean: options.reduce === 'mean',
      lost: options.onLost,
      lostAfterMs: 1000 * options.lostAfter,
      checkpointFolder: options.checkpoint,
      checkpointEvery: options.checkpointEvery,
    },
    checkpoint,
  )
  await asUsageError(unusable, () => node.save()) // the new epoch must be on disk before anybody learns of it
  const server = await asUsageError(cannotListen(host, port), () =>
    serveParameters(node, { host, port, token, job: options.job }),
  )
  const { epoch, version } = node
  const mode = formatUpdateMode(options.mode)
  report.result<'params serve'>({ url: server.url, mode, epoch, version }, () =>
    [
      `serving parameters on ${server.url}: ${mode}, ${formatCount(options.workers, 'worker')}`,
      checkpoint ? `  from the checkpoint of version ${version}; epoch ${epoch}` : '  no checkpoint yet',
    ].join('\n'),
  )
  await untilAborted(signal)
  await using _ = atEnd(() => server.close())
  await asUsageError(unusable, () => node.save())
}

function describeOptimizer(options: ServeOptions): OptimizerSettings {
  const { optimizer, lr, momentum, nesterov, betas, eps, weightDecay, clipNorm: maxNorm } = options
  const foreign =
    optimizer === 'sgd'
      ? { '--betas': betas, '--eps': eps }
      : { '--momentum': momentum, '--nesterov': nesterov }
  for (const [flag, value] of Object.entries(foreign)) {
    if (value !== undefined)
      throw new DscError('USAGE', `${flag} is not of optimizer ${optimizer}`, {
        hint: `--optimizer ${optimizer === 'sgd' ? 'adamw' : 'sgd'}, or leave ${flag} out`,
      })
  }
  return checkSettings(
    optimizer === 'sgd'
      ? {
          kind: 'sgd',
          learningRate: lr ?? 0.01,
          momentum: momentum ?? 0,
          isNesterov: nesterov ?? false,
          weightDecay: weightDecay ?? 0,
          maxNorm,
        }
      : {
          kind: 'adamw',
          learningRate: lr ?? 1e-3,
          betas: betas ?? [0.9, 0.999],
          epsilon: eps ?? 1e-8,
          weightDecay: weightDecay ?? 1e-2,
          maxNorm,
        },
  )
}

function parseBetas(text: string): [number, number] {
  const [first, second, ...more] = text.split(',').map(parseRate)
  if (first !== undefined && second !== undefined && more.length === 0) return [first, second]
  throw new DscError('USAGE', `--betas ${text} are not two numbers`, { hint: '--betas 0.9,0.999' })
}
