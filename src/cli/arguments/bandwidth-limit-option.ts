import { Option } from 'commander'
import type { Overrides } from '../../config/resolve-settings.js'
import { parseByteRate } from '../../model/byte-rate.js'
import { argument } from './parse-argument.js'

/** `--bandwidth-limit`: overrides `stage.bandwidthLimit`. */
export function bandwidthLimitOption() {
  return new Option(
    '--bandwidth-limit <rate>',
    'limit all downloads of this node, for example 200MiB/s',
  ).argParser(argument(parseByteRate))
}

/** The option's value, as an override of the configuration. */
export function readBandwidthLimit(options: {
  readonly bandwidthLimit?: number
}): Pick<Overrides, 'bandwidthBytesPerSecond'> {
  const { bandwidthLimit } = options
  return { bandwidthBytesPerSecond: bandwidthLimit }
}
