import { Command, InvalidArgumentError } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { indexSamples, type SampleFolder } from '../../feed/samples/index-samples.js'
import { openDatasetFolder } from '../../library/open-dataset-folder.js'
import { type JoinedSamples, openJoined } from '../../library/open-joined.js'
import { samplesCacheFolder } from '../../library/samples-folder.js'
import { readOwnCertificate } from '../../library/storage-tls.js'
import { formatCount } from '../../model/format-count.js'
import type { CliContext } from '../context.js'
import { cannotListen, explainRefusal } from '../explain-refusal.js'
import { type Address, parseAddress, parseExtensions } from './feed-arguments.js'
import { untilAborted } from './feed-source.js'

interface StorageOptions {
  readonly split?: string
  readonly only?: readonly string[]
  readonly listen: Address
  readonly tls?: true
  readonly stripe?: { readonly index: number; readonly count: number }
}

export function feedStorageCommand(context: CliContext): Command {
  return new Command('storage')
    .description('answer feeds of other machines with samples of this disk')
    .argument(
      '<datasets...>',
      'directories, or names of prepared datasets; several are served as one, for --mix',
    )
    .option('--split <folder>', 'folder of the dataset')
    .option('--only <extensions>', 'only files that end so, for example png,jpg', parseExtensions)
    .option('--listen <host:port>', 'where to listen', parseAddress, { host: '127.0.0.1', port: 0 })
    .option('--stripe <i/n>', 'answer only for samples s with s mod n = i', parseStripe)
    .option('--tls', 'encrypt, with certFile and keyFile of agent.tls in dsc.yaml')
    .addHelpText(
      'after',
      '\nBeyond loopback, DSC_FEED_TOKEN must hold a token that feeds share.\n\nExamples:\n  dsc feed storage flowers --stripe 0/2 --listen 10.0.0.7:7071\n  dsc feed storage web code books',
    )
    .action(async (targets: readonly string[], options: StorageOptions) => {
      const token = context.environment.DSC_FEED_TOKEN
      const { host, port } = options.listen
      if (!token && !/^(127\.|::1$|localhost$)/.test(host))
        throw new DscError('USAGE', `listening on ${host}, beyond loopback, needs a token`, {
          hint: 'DSC_FEED_TOKEN=<secret> on storage nodes and feeds',
        })
      const tls = options.tls && (await readOwnCertificate(context))
      const index = (path: string) =>
        indexSamples(path, {
          cacheFolder: samplesCacheFolder(context.environment),
          extensions: options.only,
          onProgress: (done, total) =>
            context.report.progress(`listing samples: ${done} of ${formatCount(total, 'file')}`),
        })
      const { folder, release } = await openServed(context, targets, options.split, index)
      context.report.progress(undefined)
      const { openStorageServer } = await import('../../feed/storage/storage-server.js')
      const server = await explainRefusal(cannotListen(host, port), () =>
        openStorageServer({ folder, host, port, token, tls, stripe: options.stripe }),
      )
      context.report.result(
        { host: server.host, port: server.port, samples: folder.table.count, stripe: options.stripe ?? null },
        () => `serving ${formatCount(folder.table.count, 'sample')} on ${server.host}:${server.port}`,
      )
      await untilAborted(context.signal)
      await server.close()
      await release()
    })
}

/** One dataset as it is, several joined. */
async function openServed(
  context: CliContext,
  targets: readonly string[],
  split: string | undefined,
  index: (folder: string) => Promise<SampleFolder>,
): Promise<Pick<JoinedSamples, 'folder' | 'release'>> {
  if (targets.length > 1) return openJoined(context, targets, split, index)
  const { folder, release } = await openDatasetFolder(context, targets[0]!, split)
  return { folder: await index(folder), release }
}

function parseStripe(text: string): { index: number; count: number } {
  const [index, count] = /^\d+\/\d+$/.test(text) ? text.split('/').map(Number) : []
  if (index === undefined || count === undefined || index >= count)
    throw new InvalidArgumentError('i/n with i below n is expected, for example 0/2')
  return { index, count }
}
