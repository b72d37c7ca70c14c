import { Command, Option } from 'commander'
import { EVICTION_MODES } from '../../feed/arena/arena-space.js'
import type { FeedEngine } from '../../feed/engine/feed-engine.js'
import { parseDialect } from '../../model/told-dialect.js'
import { FEED_STARTS, type FeedRequest } from '../../open/feed-request.js'
import { openNamedEngine } from '../../open/open-named-engine.js'
import { samplesCacheFolder } from '../../open/samples-folder.js'
import { SAMPLE_LAYOUTS } from '../../samples/plan/sample-placement.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseWholeNumber } from '../arguments/parse-argument.js'
import { withSampleOptions } from '../arguments/sample-options.js'
import type { CliContext } from '../context.js'
import { parseAddresses, parseK, parseMemory, parseMix, parseOrder } from './feed-arguments.js'

/** Makes a command with the argument and the options for which data to feed, and in which order. */
export function createFeedCommand(name: string) {
  return (
    withSampleOptions(new Command(name))
      .argument('[dataset]', 'a dataset or a folder')
      .option('--dialect <json>', 'how CSV is written (default: found in each file)', argument(parseDialect))
      .addOption(
        new Option('--start <when>', 'when to start if the dataset is not here yet')
          .choices(FEED_STARTS)
          .default('arriving'),
      )
      .addOption(
        new Option('--on-error <rule>', 'what to do about damaged samples')
          .choices(['raise', 'skip'])
          .default('raise'),
      )
      .option('--from <host:port,…>', 'read from storage nodes', argument(parseAddresses))
      .addOption(
        new Option('--layout <layout>', 'striped over the nodes, or all on each')
          .choices(SAMPLE_LAYOUTS)
          .default('full'),
      )
      .option('--fallback <dataset>', 'dataset or folder to read if no storage node answers')
      .option('--tls', 'check storage nodes against agent.tls.caFile')
      .option('--seed <n>', 'seed of the order', argument(parseWholeNumber), 0)
      .option('--epoch <n>', 'first epoch', argument(parseWholeNumber), 0)
      .option('--order <kind>', 'shuffle, feistel6, sequential, or groups-16 (row groups)', parseOrder)
      .option('--memory <size>', 'memory of the feed (default: 256MiB)', parseMemory)
      .option('--mix <name=times,…>', 'datasets, and how often an epoch reads each sample', parseMix)
      // For tests and measurements: the feed chooses better by itself.
      .option('--k <n>', 'samples per request', parseK, 'auto')
      .option('--request <size>', 'bytes per request, if --k is auto (default: 4MiB)', parseMemory)
      .addOption(new Option('--evict <mode>', 'how to make space').choices(EVICTION_MODES))
      .option('--no-map', 'do not let trainers map files')
      .option('--no-next', 'keep nothing for the next epoch')
      .option('--conformance', 'the two patented methods to the letter (slow)')
  )
}

/** The options that feeds share. */
export type FeedOptions = OptionsOf<typeof createFeedCommand>

/** Opens the engine for `dsc feed serve` or `dsc feed bench`. */
export function openEngineFor(
  target: string | undefined,
  options: FeedOptions,
  context: CliContext,
  onArriving?: FeedRequest['onArriving'],
): Promise<FeedEngine> {
  const { split, from, layout, fallback, mix } = options
  return openNamedEngine(
    context,
    {
      target,
      split,
      from,
      layout,
      fallback,
      mix,
      only: options.only,
      columns: options.columns,
      start: options.start,
      format: options.as,
      dialect: options.dialect,
      onDamage: options.onError,
      isEncrypted: options.tls ?? false,
      token: context.environment.DSC_FEED_TOKEN,
      cacheFolder: samplesCacheFolder(context.environment),
      onArriving,
    },
    {
      seed: options.seed,
      firstEpoch: options.epoch,
      order: options.order,
      memoryBytes: options.memory,
      k: options.k,
      requestBytes: options.request,
      eviction: options.evict,
      isCarrying: options.next,
      isMapping: options.map,
      isConformance: options.conformance ?? false,
    },
  )
}
