import { DscError } from '../../failure/dsc-error.js'
import { parseBudget } from '../../memory/budget.js'

/** Parses the size below which tensors stay. */
export function parseSmallest(text: string): number {
  const size = parseBudget(text, '--smallest')
  if (size.kind === 'bytes') return size.bytes
  throw new DscError('USAGE', `--smallest ${text} is not a size`, { hint: '--smallest 1MiB' })
}
