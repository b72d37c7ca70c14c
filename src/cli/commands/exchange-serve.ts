import { readFile } from 'node:fs/promises'
import { Command, Option } from 'commander'
import { openRendezvous } from '../../exchange/rendezvous/open-rendezvous.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatHostPort, type HostPort } from '../../model/host-port.js'
import { untilAborted } from '../../platform/poll.js'
import { asUsageError, cannotListen } from '../arguments/as-usage-error.js'
import { argument, numberFrom } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { DEFAULT_PORT, parseRendezvous } from './exchange-arguments.js'

/** `dsc exchange serve`: the rendezvous of a job's ranks, and the far end of `dsc exchange probe`. */
export function exchangeServeCommand({ report, signal, nowMs }: CliContext) {
  return new Command('serve')
    .description('run the rendezvous where ranks meet')
    .addOption(
      new Option('--listen <host:port>', 'address to listen on')
        .argParser(parseRendezvous)
        .default({ host: '127.0.0.1', port: DEFAULT_PORT } satisfies HostPort, `127.0.0.1:${DEFAULT_PORT}`),
    )
    .option('--token-file <file>', 'file with the token; required beyond loopback')
    .option('--suspect-after <seconds>', 'warn of a rank without progress', argument(numberFrom(0.1)), 5)
    .option('--lost-after <seconds>', 'give it up, and tell all ranks', argument(numberFrom(0.1)), 30)
    .addHelpText(
      'after',
      `
Examples:
  dsc exchange serve
  dsc exchange serve --listen 0.0.0.0:7171 --token-file /etc/dsc/token`,
    )
    .action(async ({ listen, tokenFile, suspectAfter, lostAfter }) => {
      const token = await readToken(tokenFile)
      const patience = { suspectAfterMs: suspectAfter * 1000, lostAfterMs: lostAfter * 1000 }
      const rendezvous = await asUsageError(cannotListen(listen.host, listen.port), () =>
        openRendezvous({ ...listen, token, patience, nowMs }),
      )
      const { host, port } = rendezvous
      report.result<'exchange serve'>({ host, port }, () => `rendezvous at ${formatHostPort(rendezvous)}`)
      await untilAborted(signal)
      await rendezvous.close()
    })
}

/** Reads the token in a file; undefined without a file. */
export async function readToken(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const token = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DscError('USAGE', `the token file ${path} cannot be read`, { cause })
  })
  // A secret that was not mounted leaves an empty file: it must not disable authentication.
  if (token.trim() !== '') return token.trim()
  throw new DscError('USAGE', `the token file ${path} is empty`, {
    hint: `umask 077; head -c 32 /dev/urandom | base64 > ${path}`,
  })
}
