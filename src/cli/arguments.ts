import { InvalidArgumentError, Option } from 'commander'
import { DscError } from '../failure/dsc-error.js'
import { parseByteSize } from '../model/byte-size.js'
import { parseDuration } from '../model/duration.js'

/** `--task`: who holds the lease, instead of the calling process, Slurm job or pod. */
export function taskOption(): Option {
  return new Option('--task <name>', 'hold the lease for this task until --ttl or dsc release')
}

/** `--ttl`: how long a lease that nobody renews lives. */
export function ttlOption(): Option {
  return new Option(
    '--ttl <duration>',
    'how long a lease of --task lives, for example 90m or 7d (default: 24h)',
  ).argParser(parseDurationArgument)
}

/** Parses a duration argument into ms; commander shows what was expected. */
export function parseDurationArgument(raw: string): number {
  return asArgument(() => parseDuration(raw))
}

/** Parses a size argument into bytes; commander shows what was expected. */
export function parseByteSizeArgument(raw: string): number {
  return asArgument(() => parseByteSize(raw))
}

function asArgument<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error))
  }
}

/** Runs a parser of the model on what the user typed; its RangeError becomes a USAGE failure. */
export function parseWord<T>(parse: (raw: string) => T, raw: string): T {
  try {
    return parse(raw)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('USAGE', error.message)
  }
}
