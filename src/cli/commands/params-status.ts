import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { readToken } from './exchange-serve.js'

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
      const token = await readToken(options.tokenFile)
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const answer = await fetch(new URL('/v1/status', options.server), { headers, signal }).catch(
        (cause: unknown) => {
          const inner = (cause as { cause?: { code?: string; message?: string } }).cause
          const reason = inner?.code ?? inner?.message ?? String(cause)
          throw new DscError('PARAMS_UNREACHABLE', `${options.server} does not answer (${reason})`, {
            hint: 'start one with `dsc params serve`, or name it with --server',
            cause,
          })
        },
      )
      if (!answer.ok)
        throw new DscError('PARAMS_REFUSED', `${options.server} answers ${answer.status}`, {
          hint: '--token-file',
        })
      const status = (await answer.json()) as Record<string, unknown>
      report.result(status, () =>
        Object.entries(status)
          .map(([name, value]) => `${name.padEnd(14)} ${Array.isArray(value) ? value.join(' ') : value}`)
          .join('\n'),
      )
    })
}
