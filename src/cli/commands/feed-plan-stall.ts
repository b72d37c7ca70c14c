import { Command, Option } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { RequestCost } from '../../feed/plan/request-cost.js'
import { askFeed } from '../../feed/session/ask-feed.js'
import { MESSAGE } from '../../feed/session/wire.js'
import { parseByteRate } from '../../model/byte-rate.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parsePositive, parseRate } from '../arguments/parse-argument.js'
import { parseMetrics } from './feed-status.js'

/** Makes a command with options for how fast the data comes and how fast training takes it. */
export function createStallCommand(name: string) {
  return new Command(name)
    .option('--step-ms <ms>', 'time of a training step', argument(parsePositive))
    .addOption(
      new Option('--rate <n>', 'instead of --step-ms: samples a second, of all ranks here')
        .argParser(argument(parsePositive))
        .conflicts('stepMs'),
    )
    .option('--fixed-ms <ms>', 'fixed time of a request to a storage node', argument(parseRate))
    .option(
      '--bandwidth <rate>',
      'bandwidth of a storage node, for example 1.2GiB/s',
      argument(parseByteRate),
    )
    .addOption(
      new Option('--measured <socket>', 'instead of both: take them from this running feed').conflicts([
        'fixedMs',
        'bandwidth',
      ]),
    )
}

type StallOptions = OptionsOf<typeof createStallCommand>

/** Undefined if no argument mentions time. */
export async function readRequestCost(options: StallOptions): Promise<RequestCost | undefined> {
  const { stepMs, rate, fixedMs, bandwidth, measured } = options
  if (measured !== undefined) return readMeasured(measured)
  if (fixedMs !== undefined && bandwidth !== undefined) return { fixedMs, bytesPerMs: bandwidth / 1000 }
  if ([stepMs, rate, fixedMs, bandwidth].every((each) => each === undefined)) return undefined
  throw new DscError('USAGE', 'how long training will wait depends on what a request costs', {
    hint: '--measured <socket of a running feed>, or --fixed-ms and --bandwidth',
  })
}

async function readMeasured(socket: string): Promise<RequestCost> {
  const metrics = parseMetrics(await askFeed(socket, MESSAGE.status))
  const fixed = metrics.dsc_feed_request_fixed_seconds
  const rate = metrics.dsc_feed_request_bytes_per_second
  if (fixed !== undefined && rate !== undefined) return { fixedMs: fixed * 1000, bytesPerMs: rate / 1000 }
  throw new DscError('USAGE', `the feed on ${socket} has not measured yet what a request costs`, {
    hint: 'let it feed for a while, or give --fixed-ms and --bandwidth',
  })
}
