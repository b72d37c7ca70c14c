import { type Command, Option } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { FeedSettings, OpenedFeeder } from '../../feed/open-feeder.js'
import { EVICTION_MODES, type EvictionMode } from '../../feed/plan/arena-plan.js'
import { ORDER_KINDS, type OrderKind } from '../../feed/plan/order.js'
import { SAMPLE_LAYOUTS, type SampleLayout } from '../../feed/plan/sample-placement.js'
import type { SampleFolder } from '../../feed/samples/index-samples.js'
import type { CliContext } from '../context.js'
import {
  type Address,
  parseAddresses,
  parseExtensions,
  parseK,
  parseMemory,
  parseMix,
  parseWholeNumber,
  samplesCacheFolder,
} from './feed-arguments.js'
import { openDatasetFolder } from './feed-dataset.js'
import { openJoined } from './feed-joined.js'
import { readStorageTls } from './feed-tls.js'

/** What `dsc feed serve` and `dsc feed bench` have in common. */
export interface FeedOptions {
  readonly split?: string
  readonly only?: readonly string[]
  readonly from?: readonly Address[]
  readonly layout: SampleLayout
  readonly fallback?: string
  readonly seed: number
  readonly order?: OrderKind
  readonly memory?: number
  readonly k: number | 'auto'
  readonly request?: number
  readonly evict?: EvictionMode
  readonly next: boolean
  readonly conformance?: true
  readonly tls?: true
  readonly mix?: Readonly<Record<string, number>>
}

export function withFeedOptions(command: Command): Command {
  return command
    .argument('[dataset]', 'a directory, or the name of a prepared dataset')
    .option('--split <folder>', 'folder of the dataset to feed, for example train')
    .option('--only <extensions>', 'feed only files that end so, for example png,jpg', parseExtensions)
    .option('--from <host:port,…>', 'read from storage nodes instead of this disk', parseAddresses)
    .addOption(
      new Option('--layout <layout>', 'how samples lie on the nodes').choices(SAMPLE_LAYOUTS).default('full'),
    )
    .option(
      '--fallback <dataset>',
      'a folder, or a dataset whose source is read, when no storage node can give a sample',
    )
    .option('--tls', 'storage nodes must show a certificate that agent.tls.caFile of dsc.yaml vouches for')
    .option('--seed <n>', 'seed of the order', parseWholeNumber, 0)
    .addOption(new Option('--order <kind>', 'how an epoch is ordered').choices(ORDER_KINDS))
    .option('--memory <size>', 'memory of the feed (default: 256MiB)', parseMemory)
    .option('--k <n>', 'samples per request', parseK, 'auto')
    .option('--request <size>', 'bytes per request that k=auto aims for (default: 4MiB)', parseMemory)
    .addOption(new Option('--evict <mode>', 'how room is made').choices(EVICTION_MODES))
    .option(
      '--mix <name=times,…>',
      'instead of one dataset: folders or datasets (with --from: first folders of the names), and how often an epoch visits each sample',
      parseMix,
    )
    .option('--no-next', 'keep nothing for the next epoch')
    .option('--conformance', 'the two patented methods to the letter: slow, for comparison')
}

/** Opens the feed over a folder of this machine or over storage nodes. */
export async function openFeedOf(
  target: string | undefined,
  options: FeedOptions,
  context: CliContext,
): Promise<OpenedFeeder> {
  const settings: FeedSettings = {
    seed: options.seed,
    order: options.order,
    memoryBytes: options.memory,
    k: options.k,
    requestBytes: options.request,
    eviction: options.evict,
    isCarrying: options.next,
    isConformance: options.conformance ?? false,
  }
  const { indexSamples } = await import('../../feed/samples/index-samples.js')
  const index = async (folder: string) => {
    const listed = await indexSamples(folder, {
      cacheFolder: samplesCacheFolder(context.environment),
      extensions: options.only,
      onProgress: (done, total) => context.report.progress(`listing samples: ${done} of ${total} files`),
    })
    context.report.progress(undefined)
    return listed
  }
  if (options.from) {
    const { openRemoteFeeder } = await import('../../feed/open-remote-feeder.js')
    const { openFallback } = await import('./feed-fallback.js')
    const fallback =
      options.fallback === undefined
        ? undefined
        : await openFallback(context, options.fallback, options.split, index)
    const token = context.environment.DSC_FEED_TOKEN
    const tls = options.tls && (await readStorageTls(context))
    const { from: nodes, layout, mix } = options
    return openRemoteFeeder({ nodes, layout, fallback, token, tls, mix }, settings)
  }
  if (options.mix) {
    if (target !== undefined)
      throw new DscError('USAGE', `either the dataset ${target} or --mix is given, not both`)
    return openMixedFeeder(context, options.mix, options.split, index, settings)
  }
  if (target === undefined)
    throw new DscError('USAGE', 'a dataset, --mix, or --from <storage nodes> is needed', {
      hint: 'dsc feed serve --help',
    })
  const { openStripedFeed } = await import('./feed-striped.js')
  const filter = { split: options.split, extensions: options.only }
  const striped = await openStripedFeed(context, target, filter, settings)
  if (striped) return striped
  const { openLocalFeeder } = await import('../../feed/open-feeder.js')
  const dataset = await openDatasetFolder(context, target, options.split)
  try {
    const opened = openLocalFeeder(await index(dataset.folder), settings)
    return { ...opened, close: () => opened.close().finally(dataset.release) }
  } catch (error) {
    await dataset.release()
    throw error
  }
}

async function openMixedFeeder(
  context: CliContext,
  mix: Readonly<Record<string, number>>,
  split: string | undefined,
  index: (folder: string) => Promise<SampleFolder>,
  settings: FeedSettings,
): Promise<OpenedFeeder> {
  const [{ openLocalFeeder }, { findMixParts }] = await Promise.all([
    import('../../feed/open-feeder.js'),
    import('../../feed/samples/find-mix-parts.js'),
  ])
  const { folder, names, release } = await openJoined(context, Object.keys(mix), split, index)
  try {
    const times = Object.fromEntries([...names].map(([target, name]) => [name, mix[target]!]))
    const opened = openLocalFeeder(folder, { ...settings, mix: findMixParts(folder.table, times) })
    return { ...opened, close: () => opened.close().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
