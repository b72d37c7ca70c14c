import { type Command, Option } from 'commander'
import { EVICTION_MODES, type EvictionMode } from '../../feed/arena/arena-space.js'
import type { FeedEngine } from '../../feed/engine/feed-engine.js'
import type { OrderKind } from '../../feed/plan/order.js'
import type { HostPort } from '../../model/host-port.js'
import type { ToldDialect } from '../../model/sample-formats.js'
import { parseDialect } from '../../model/told-dialect.js'
import { FEED_STARTS, type FeedStart } from '../../open/feed-request.js'
import { openNamedEngine } from '../../open/open-named-engine.js'
import { samplesCacheFolder } from '../../open/samples-folder.js'
import { SAMPLE_LAYOUTS, type SampleLayout } from '../../samples/plan/sample-placement.js'
import { argument } from '../arguments/parse-argument.js'
import { type SampleOptions, withSampleOptions } from '../arguments/sample-options.js'
import type { CliContext } from '../context.js'
import {
  parseAddresses,
  parseK,
  parseMemory,
  parseMix,
  parseOrder,
  parseWholeNumber,
} from './feed-arguments.js'

/** The options that `dsc feed serve` and `dsc feed bench` share. */
export interface FeedOptions extends SampleOptions {
  readonly start: FeedStart
  readonly onError: 'raise' | 'skip'
  readonly from?: readonly HostPort[]
  readonly layout: SampleLayout
  readonly fallback?: string
  readonly seed: number
  readonly epoch: number
  readonly order?: OrderKind
  readonly memory?: number
  readonly k: number | 'auto'
  readonly request?: number
  readonly evict?: EvictionMode
  readonly dialect?: ToldDialect
  readonly next: boolean
  readonly map: boolean
  readonly conformance?: true
  readonly tls?: true
  readonly mix?: Readonly<Record<string, number>>
}

/** Adds the argument and the options for which data to feed, and in which order. */
export function withFeedOptions(command: Command): Command {
  withSampleOptions(command)
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
    .option('--seed <n>', 'seed of the order', parseWholeNumber, 0)
    .option('--epoch <n>', 'first epoch', parseWholeNumber, 0)
    .option('--order <kind>', 'shuffle, feistel6, sequential, or groups-16 (row groups)', parseOrder)
    .option('--memory <size>', 'memory of the feed (default: 256MiB)', parseMemory)
    .option('--mix <name=times,…>', 'datasets, and how often an epoch reads each sample', parseMix)
  for (const option of createTuningOptions()) command.addOption(option)
  return command
}

/** Options for tests and measurements: the feed chooses better by itself. */
function createTuningOptions(): readonly Option[] {
  return [
    new Option('--k <n>', 'samples per request').argParser(parseK).default('auto'),
    new Option('--request <size>', 'bytes per request, if --k is auto (default: 4MiB)').argParser(
      parseMemory,
    ),
    new Option('--evict <mode>', 'how to make space').choices(EVICTION_MODES),
    new Option('--no-map', 'do not let trainers map files'),
    new Option('--no-next', 'keep nothing for the next epoch'),
    new Option('--conformance', 'the two patented methods to the letter (slow)'),
  ]
}

/** Opens the engine for `dsc feed serve` or `dsc feed bench`. */
export function openEngineFor(
  target: string | undefined,
  options: FeedOptions,
  context: CliContext,
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

/** Resolves when the command is told to stop. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
