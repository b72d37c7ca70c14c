import { Command } from 'commander'
import type { ReadProgress } from '../../cache/api/upkeep-api.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import type { VerifiedDataset } from '../../cache/upkeep/verify-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc verify`: reads every byte of a dataset's copies on this node again. */
export function verifyCommand(context: CliContext) {
  return new Command('verify')
    .description('check copies on this node against their checksums')
    .argument('[datasets...]', 'datasets to verify, by name or URL (default: every ready copy)')
    .option('--repair', 'download missing and damaged parts again')
    .addHelpText(
      'after',
      '\nFor stripes that were lost with their node, use `dsc repair`.\n\nExamples:\n  dsc verify flowers\n  dsc verify --repair\n  dsc verify flowers --json',
    )
    .action(async (named, options) => {
      const names = new Set<string>()
      for (const word of named) names.add(await requireKnownDataset(context, word, 'dsc verify'))
      const isRepair = options.repair === true
      const api = await context.openApi()
      const { copies: results, sharedElsewhere } = await api.verify(
        { names: [...names], isRepair },
        { signal: context.signal, onProgress: (progress) => showReading(context, progress) },
      )
      context.report.progress(undefined)
      if (sharedElsewhere > 0 && names.size > 0)
        context.report.note(
          `other copies share ${formatCount(sharedElsewhere, 'damaged file')}; to check every copy: dsc verify${isRepair ? ' --repair' : ''}`,
        )
      context.report.result<'verify'>({ copies: results }, () =>
        results.length === 0 ? 'no copies to verify' : results.map(formatVerified).join('\n'),
      )
      throwProblems(results)
    })
}

/** Shows how far the reading of a dataset is. */
export function showReading({ report }: CliContext, progress: ReadProgress): void {
  if (progress.step !== 'verifying') return
  const { dataset, files, bytes } = progress
  report.progress(`${dataset}: verifying, ${formatCount(files, 'file')}, ${formatByteSize(bytes)} so far`)
}

function formatVerified(verified: VerifiedDataset): string {
  const { dataset, checkedFiles, checkedBytes, damages, failure } = verified
  const lines = [
    `${dataset}: ${formatCount(checkedFiles, 'file')}, ${formatByteSize(checkedBytes)} read, ${describe(verified)}`,
  ]
  if (damages.length > 0) {
    const rows = damages.map(({ path, problem, expected, found }) => [
      `  ${path}`,
      problem,
      `expected ${expected}, found ${found}`,
    ])
    lines.push(alignColumns(rows))
  }
  if (failure) lines.push(`  ${failure.message}`)
  return lines.join('\n')
}

/** Throws the first failure, else COPY_DAMAGED if damage was found and not repaired. */
function throwProblems(results: readonly VerifiedDataset[]): void {
  const failed = results.flatMap(({ dataset, failure }) => (failure ? [{ dataset, ...failure }] : []))
  if (failed[0]) {
    const { code, hint } = failed[0]
    throw new DscError(code, failed.map(({ dataset, message }) => `${dataset}: ${message}`).join('; '), {
      hint,
    })
  }
  const damaged = results.filter(({ damages, repaired }) => damages.length > 0 && repaired === null)
  const names = [...new Set(damaged.map(({ dataset }) => dataset))] // several versions may be damaged
  if (names.length > 0) {
    throw new DscError('COPY_DAMAGED', `${names.join(', ')}: files differ from the manifest`, {
      hint: `dsc verify ${names.join(' ')} --repair`,
    })
  }
}

function describe({ damages: found, repaired, failure }: VerifiedDataset): string {
  const damages = found.length
  if (damages === 0) return failure ? 'not verified' : 'all as downloaded'
  if (repaired === null) return `${damages} damaged`
  const failures = repaired.failures.length
  return `${damages} damaged, ${failures === 0 ? 'repaired' : `${damages - failures} of them repaired`}`
}
