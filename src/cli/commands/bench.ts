import { Command } from 'commander'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { interrupted } from '../../cache/prepare/interrupted.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { JudgedFigure, Unit } from '../bench/figure.js'
import { type BenchResult, runBench } from '../bench/run-bench.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc bench`: whether this node's disk, source and record are fast enough, and which one is not. */
export function benchCommand(context: CliContext) {
  return new Command('bench')
    .argument('[dataset]', 'whose source to read (default: the first in S3)')
    .addHelpText(
      'after',
      '\nIt takes a minute and writes up to 512 MiB into the cache, then removes them. Running jobs make it look slower.\n\nExamples:\n  dsc bench\n  dsc bench imagenet --json | jq .slowest',
    )
    .action(async (raw) => {
      if ((await context.config()).door !== undefined)
        throw new DscError(
          'NOT_PERMITTED',
          'dsc bench writes to the cache, which belongs to the service of this node',
          { hint: 'sudo DSC_DOOR=none dsc bench' },
        )
      const dataset = raw === undefined ? await findDataset(context) : await resolveDataset(context, raw)
      const cache = await context.openCache()
      const { report, signal } = context
      const startMs = performance.now()
      const result = await runBench(cache, {
        dataset,
        signal,
        onPart: (part) => report.progress(`measuring the ${part}`),
      }).catch((error: unknown) => {
        throw signal.aborted ? interrupted(signal) : error
      })
      report.progress(undefined)
      const { slowest } = result
      const answer: AnswerOf<'bench'> = {
        node: cache.node,
        dataset: dataset?.name ?? null,
        elapsedSeconds: (performance.now() - startMs) / 1000,
        ...result,
        slowest: slowest ? { part: slowest.part, what: slowest.what } : null,
      }
      report.result(answer, () => formatBench(result))
    })
}

async function findDataset(context: CliContext): Promise<Dataset | undefined> {
  const { datasets } = await context.config()
  const known = [...datasets, ...(await (await context.openRecord()).listDatasets())]
  return known.find(({ source }) => source.startsWith('s3:')) ?? known[0]
}

function formatBench({ figures, skipped, slowest }: BenchResult): string {
  const rows = figures.map((figure) => [
    figure.isEnough ? 'ok' : 'SLOW',
    figure.part,
    figure.what,
    formatValue(figure.value, figure.unit),
    `needed: ${formatValue(figure.needed, figure.unit)}`,
  ])
  return [
    alignColumns([...rows, ...skipped.map(({ part, reason }) => ['skipped', part, reason])]),
    '',
    slowest ? formatSlowest(slowest) : 'Nothing that was measured is slow.',
  ].join('\n')
}

function formatSlowest({ part, what, value, needed, unit }: JudgedFigure): string {
  return `The ${part} is slow: ${what} ${formatValue(value, unit)}, where dsc needs ${formatValue(needed, unit)}.`
}

function formatValue(value: number, unit: Unit): string {
  switch (unit) {
    case 'bytesPerSecond':
      return `${(value / 1e6).toFixed(value < 10e6 ? 1 : 0)} MB/s`
    case 'filesPerSecond':
      return `${value.toFixed(0)} files/s`
    case 'ms':
      return `${value.toFixed(value < 10 ? 1 : 0)} ms`
  }
}
