import { DscError } from '../../failure/dsc-error.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { MixPart } from '../plan/mix.js'

/**
 * Finds the parts of a mix: runs of samples whose names begin with the same folder. `times` gives, for each folder, how
 * often an epoch visits its samples; it must name all of them, so that none is left out by mistake.
 */
export function findMixParts(
  table: Pick<SampleTable, 'count' | 'nameOf'>,
  times: Readonly<Record<string, number>>,
): readonly MixPart[] {
  const parts: { name: string; sampleCount: number; times: number }[] = []
  for (let sample = 0; sample < table.count; sample++) {
    const name = table.nameOf(sample).split('/', 1)[0]!
    const last = parts.at(-1)
    if (last?.name === name) last.sampleCount++
    else parts.push({ name, sampleCount: 1, times: times[name] ?? Number.NaN })
  }
  const found = new Set(parts.map((part) => part.name))
  const unnamed = parts.find((part) => Number.isNaN(part.times))?.name
  const missing = Object.keys(times).find((name) => !found.has(name))
  if (unnamed === undefined && missing === undefined) return parts
  throw new DscError(
    'USAGE',
    unnamed === undefined
      ? `the mix names ${missing}, but no sample is in such a folder`
      : `the mix does not say how often the samples in ${unnamed} are visited`,
    { hint: `--mix ${[...found].slice(0, 8).map((name) => `${name}=1`)}` },
  )
}
