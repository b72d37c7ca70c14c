import { Option } from 'commander'
import { parseLeaseTime } from '../../model/lease.js'
import { argument, parseWords } from './parse-argument.js'

/** `--task`: the holder of the lease, instead of the calling process, Slurm job or pod. */
export function taskOption(description = 'hold the lease for this task, until --ttl or `dsc release`') {
  return new Option('--task <task>', description).argParser(argument(parseWords))
}

/** `--ttl`: the life of a lease that is not renewed. */
export function ttlOption() {
  return new Option(
    '--ttl <duration>',
    'end the lease of --task after this time (default: 24h, at most 30d)',
  ).argParser(argument(parseLeaseTime))
}
