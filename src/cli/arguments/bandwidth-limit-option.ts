import { Option } from 'commander'
import type { Overrides } from '../../config/resolve-settings.js'
import { parseByteRate } from '../../model/byte-rate.js'
import { argument } from './parse-argument.js'

/** `--bandwidth-limit`: overrides `stage.bandwidthLimit`. */
export function bandwidthLimitOption(): Option {
  return new Option(
    '--bandwidth-limit <rate>',
    'most that the node may take, for example 200MiB/s or 1Gbit/s; shared with what else is being staged on it',
  ).argParser(argument(parseByteRate))
}

/** The option's value, as an override of the configuration. */
export function readBandwidthLimit(options: {
  readonly bandwidthLimit?: number
}): Pick<Overrides, 'bandwidthBytesPerSecond'> {
  const { bandwidthLimit } = options
  return bandwidthLimit === undefined ? {} : { bandwidthBytesPerSecond: bandwidthLimit }
}
