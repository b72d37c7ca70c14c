import { Option } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { parseBudget } from '../../memory/budget.js'
import { MIN_MOVE_BYTES } from '../../memory/plan/candidates.js'

/** `--budget`, without which there is nothing to plan for. */
export function budgetOption() {
  return new Option('--budget <size>', 'bytes (24GiB) or a share of the peak without a plan (50%)')
    .argParser((text: string) => parseBudget(text))
    .makeOptionMandatory()
}

/** `--smallest`: the size below which tensors stay. */
export function smallestOption() {
  return new Option('--smallest <size>', 'smallest tensor to move')
    .argParser(parseSmallest)
    .default(MIN_MOVE_BYTES, '1MiB')
}

function parseSmallest(text: string): number {
  const size = parseBudget(text, '--smallest')
  if (size.kind === 'bytes') return size.bytes
  throw new DscError('USAGE', `--smallest ${text} is not a size`, { hint: '--smallest 1MiB' })
}
