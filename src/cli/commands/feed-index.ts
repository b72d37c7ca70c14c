import { Command, Option } from 'commander'
import { closeAfter } from '../../failure/closers.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import { indexFolder } from '../../open/index-folder.js'
import { openDatasetFolder } from '../../open/open-dataset-folder.js'
import type { SampleEncoding } from '../../samples/sample-encoding.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { withSampleOptions } from '../arguments/sample-options.js'
import type { CliContext } from '../context.js'

/** `dsc feed index`. */
export function feedIndexCommand(context: CliContext) {
  return withSampleOptions(new Command('index'))
    .description('list the samples of a dataset')
    .argument('<dataset>', 'a dataset or a folder')
    .addOption(
      new Option('--on-error <rule>', 'what to do about damaged samples')
        .choices(['raise', 'skip'])
        .default('raise'),
    )
    .option('--refresh', 'list the samples again')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc feed index flowers\n  dsc feed index /data/lines --as jsonl --json',
    )
    .action(async (target, options) => {
      const { folder, copy, split, release } = await openDatasetFolder(context, target, options.split)
      const startedMs = performance.now()
      const { table, root, isCached, leftOut } = await closeAfter(
        indexFolder(context, folder, {
          split,
          isRefreshed: options.refresh ?? false,
          only: options.only,
          format: options.as,
          columns: options.columns,
          onDamage: options.onError,
          copy,
        }),
        release,
      )
      const answer: AnswerOf<'feed index'> = {
        path: root,
        formats: countFormats(table),
        samples: table.count,
        files: table.fileCount,
        sampleBytes: table.totalBytes,
        largestSampleBytes: table.largestBytes,
        indexBytes: table.bytes.length,
        fingerprint: table.fingerprint,
        isListedBefore: isCached,
        elapsedSeconds: (performance.now() - startedMs) / 1000,
        leftOut,
      }
      context.report.result(answer, () => formatIndex(answer))
    })
}

/** The contents of the files of one encoding. */
interface FoundFormat {
  readonly format: string
  /** Names of the fields if all samples have the same; else null. */
  readonly columns: readonly string[] | null
  readonly samples: number
}

function countFormats(table: SampleTable): readonly FoundFormat[] {
  const counts = new Map<SampleEncoding, number>()
  for (let sample = 0; sample < table.count; sample++) {
    const encoding = table.encodingOf(sample)
    counts.set(encoding, (counts.get(encoding) ?? 0) + 1)
  }
  return [...counts].map(([{ format, columns }, samples]) => ({ format, columns: columns ?? null, samples }))
}

/** Maximum number of encodings to show: each CSV file may have its own header. */
const SHOWN_FORMATS = 10

function formatIndex(index: AnswerOf<'feed index'>): string {
  const { path, formats, samples, files, sampleBytes, largestSampleBytes, indexBytes } = index
  const made = index.isListedBefore ? 'made before' : `made in ${index.elapsedSeconds.toFixed(1)} s`
  const lines = [
    `${path}: ${formatCount(samples, 'sample')} in ${formatCount(files, 'file')}, ${formatByteSize(sampleBytes)}, the largest ${formatByteSize(largestSampleBytes)}`,
    `index    ${formatByteSize(indexBytes)}, ${made}`,
    ...formats.slice(0, SHOWN_FORMATS).map(({ format, columns, samples: count }) => {
      const fields = columns ? `: ${columns.join(', ')}` : ''
      return `format   ${format}, ${formatCount(count, 'sample')}${fields}`
    }),
  ]
  if (formats.length > SHOWN_FORMATS)
    lines.push(`         and ${formats.length - SHOWN_FORMATS} more (--json)`)
  return lines.join('\n')
}
