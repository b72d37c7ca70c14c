import { Command } from 'commander'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { askParameterServer, formatParameterStatus } from './ask-parameter-server.js'

/** `dsc params status`: asks a central node how far the job is. */
export function paramsStatusCommand({ report, signal }: CliContext): Command {
  return new Command('status')
    .description('show version, steps per rank and who is waited for')
    .option(
      '--server <url>',
      'where the central node listens',
      argument(parseEndpoint),
      'http://127.0.0.1:7272',
    )
    .option('--token-file <file>', 'the token the server was started with')
    .addHelpText('after', '\nExamples:\n  dsc params status --server http://127.0.0.1:7272')
    .action(async (options: { server: string; tokenFile?: string }) => {
      const status = await askParameterServer(options, { signal })
      report.result(status, () => formatParameterStatus(status))
    })
}
