import { Command, InvalidArgumentError, Option } from 'commander'
import { withClosers } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatHostPort, type HostPort, parseHostPort } from '../../model/host-port.js'
import { indexFolder } from '../../open/index-folder.js'
import { openDatasetFolder } from '../../open/open-dataset-folder.js'
import { type JoinedSamples, openJoined, type ReadingOptions } from '../../open/open-joined.js'
import { readOwnCertificate } from '../../open/storage-tls.js'
import { untilAborted } from '../../platform/poll.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { asUsageError, cannotListen } from '../arguments/as-usage-error.js'
import { argument } from '../arguments/parse-argument.js'
import { withSampleOptions } from '../arguments/sample-options.js'
import type { CliContext } from '../context.js'

/** `dsc feed storage`. */
export function feedStorageCommand(context: CliContext) {
  return withSampleOptions(new Command('storage'))
    .description('serve samples to feeds on other machines')
    .argument('<datasets...>', 'datasets or folders; several for --mix')
    .addOption(
      new Option('--listen <host:port>', 'address to listen on; port 0 is a free one')
        .argParser(argument((raw) => parseHostPort(raw)))
        .default({ host: '127.0.0.1', port: 0 } satisfies HostPort, '127.0.0.1:0'),
    )
    .option('--stripe <i/n>', 'serve only samples s with s mod n = i', parseStripe)
    .option('--tls', 'encrypt with agent.tls of dsc.yaml')
    .addHelpText(
      'after',
      '\nBeyond loopback, set DSC_FEED_TOKEN to a token, here and for the feeds.\n\nExamples:\n  dsc feed storage flowers --stripe 0/2 --listen 10.0.0.7:7071\n  dsc feed storage web code books',
    )
    .action(async (targets, options) => {
      const token = context.environment.DSC_FEED_TOKEN
      const { host, port } = options.listen
      if (!token && !/^(127\.|::1$|localhost$)/.test(host))
        throw new DscError('USAGE', `listening on ${host}, beyond loopback, needs a token`, {
          hint: 'DSC_FEED_TOKEN=<secret> on storage nodes and feeds',
        })
      const tls = options.tls && (await readOwnCertificate(context))
      const index = (path: string, copy?: Copy) =>
        indexFolder(context, path, { only: options.only, format: options.as, columns: options.columns, copy })
      await withClosers(async (closers) => {
        const { folder, release } = await openServed(context, targets, { split: options.split, index })
        closers.add(release)
        const { StorageServer } = await import('../../feed/storage/storage-server.js')
        const server = await asUsageError(cannotListen(host, port), () =>
          StorageServer.open({ folder, host, port, token, tls, stripe: options.stripe }),
        )
        closers.add(() => server.close())
        const answer: AnswerOf<'feed storage'> = {
          host: server.host,
          port: server.port,
          samples: folder.table.count,
          stripe: options.stripe ?? null,
        }
        context.report.result(
          answer,
          () => `serving ${formatCount(folder.table.count, 'sample')} on ${formatHostPort(server)}`,
        )
        await untilAborted(context.signal)
      })
    })
}

/** Opens one dataset as it is, several as one. */
async function openServed(
  context: CliContext,
  targets: readonly string[],
  reading: ReadingOptions,
): Promise<Pick<JoinedSamples, 'folder' | 'release'>> {
  if (targets.length > 1) return openJoined(context, targets, reading)
  const { folder, copy, split, release } = await openDatasetFolder(context, targets[0]!, reading.split)
  return { folder: await reading.index(folder, copy, undefined, split), release }
}

function parseStripe(text: string): { index: number; count: number } {
  const [index, count] = /^\d+\/\d+$/.test(text) ? text.split('/').map(Number) : []
  if (index === undefined || count === undefined || index >= count)
    throw new InvalidArgumentError('i/n with i below n is expected, for example 0/2')
  return { index, count }
}
