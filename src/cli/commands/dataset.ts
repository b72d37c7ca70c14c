import { Command } from 'commander'
import { describeDataset } from '../../cache/names/dataset-answer.js'
import { readSource, resolveDataset } from '../../cache/names/resolve-dataset.js'
import { unknownDataset } from '../../cache/names/unknown-dataset.js'
import { describeCopy } from '../../cache/status/describe-status.js'
import { DscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import { formatByteSize } from '../../model/byte-size.js'
import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import { parseSourceUrl, SOURCE_EXAMPLES } from '../../model/source-url.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc dataset add|ls|show|rm`: the names that prepare understands. */
export function datasetCommand(context: CliContext) {
  return new Command('dataset')
    .addCommand(addCommand(context))
    .addCommand(listCommand(context))
    .addCommand(showCommand(context))
    .addCommand(removeCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc dataset add flowers s3://ml-data/flowers/\n  dsc dataset ls\n  dsc dataset rm flowers',
    )
}

function addCommand(context: CliContext) {
  return new Command('add')
    .description('add or change a dataset name')
    .argument('<name>', 'letters, digits, dots, dashes and underscores')
    .argument('<source>', SOURCE_EXAMPLES)
    .option('--endpoint <url>', 'S3 server or hub (default: AWS or huggingface.co)', argument(parseEndpoint))
    .option('--region <name>', 'S3 region')
    .option('--profile <name>', 'AWS profile')
    .option('--path-style', 'put the bucket in the path instead of the host name')
    .option('--anonymous', 'send no credentials')
    .option('--requester-pays', 'agree to pay for requests')
    .option('--include <glob...>', 'only files that match, relative to the source')
    .option('--exclude <glob...>', 'no files that match; wins over --include')
    .addHelpText(
      'after',
      "\nExamples:\n  dsc dataset add flowers s3://ml-data/flowers/\n  dsc dataset add digits s3://train/digits/ --endpoint http://127.0.0.1:9000 --path-style --include '**/*.png'\n  dsc dataset add scans file:///mnt/nfs/scans/\n  dsc dataset add llama hf://org/model@v1.0 --include '*.safetensors' --include '*.json'",
    )
    .action(async (rawName, rawSource, options) => {
      const name = parseWord(parseDatasetName, rawName)
      const source = readSource(rawSource)
      parseWord(parseSourceUrl, source)
      const { datasets } = await context.config()
      if (datasets.some((declared) => declared.name === name)) {
        throw new DscError('USAGE', `${name} is declared in dsc.yaml, which counts`, {
          hint: 'change it there, or choose another name',
        })
      }
      const { include = [], exclude = [], endpoint, region, profile } = options
      const { pathStyle, anonymous, requesterPays } = options
      const reach = { endpoint, region, profile, pathStyle, anonymous, requesterPays }
      const dataset: Dataset = { name, source, include, exclude, ...reach }
      const record = await context.openRecord()
      await record.saveDataset(dataset, context.nowMs())
      context.report.result<'dataset add'>(
        { ...describeDataset(dataset) },
        () => `added ${name} (${source})\nnext: dsc prepare ${name}`,
      )
    })
}

function listCommand(context: CliContext) {
  return new Command('ls')
    .description('list datasets, and where each is declared')
    .addHelpText('after', '\nExamples:\n  dsc dataset ls\n  dsc dataset ls --json')
    .action(async () => {
      const { datasets } = await context.config()
      const record = await context.openRecord()
      const declared = new Set(datasets.map(({ name }) => name))
      const added = (await record.listDatasets()).filter(({ name }) => !declared.has(name))
      const rows = [
        ...datasets.map((dataset) => ({ ...dataset, declaredIn: 'dsc.yaml' as const })),
        ...added.map((dataset) => ({ ...dataset, declaredIn: 'record' as const })),
      ].toSorted((a, b) => (a.name < b.name ? -1 : 1))
      const answer: AnswerOf<'dataset ls'> = {
        datasets: rows.map(({ declaredIn, ...dataset }) => ({ ...describeDataset(dataset), declaredIn })),
      }
      context.report.result(answer, () =>
        rows.length === 0
          ? 'no datasets yet; add one: dsc dataset add flowers s3://ml-data/flowers/'
          : alignColumns([
              ['DATASET', 'SOURCE', 'DECLARED IN'],
              ...rows.map(({ name, source, declaredIn }) => [name, source, declaredIn]),
            ]),
      )
    })
}

function showCommand(context: CliContext) {
  return new Command('show')
    .description('show one dataset and its copies')
    .argument('<dataset>')
    .addHelpText('after', '\nExamples:\n  dsc dataset show flowers\n  dsc dataset show flowers --json')
    .action(async (name) => {
      const dataset = await resolveDataset(context, name)
      const record = await context.openRecord()
      const copies = await record.listCopies({ dataset: dataset.name }, context.nowMs())
      const answer: AnswerOf<'dataset show'> = {
        ...describeDataset(dataset),
        copies: copies.map(describeCopy),
      }
      context.report.result(answer, () =>
        alignColumns([
          ...Object.entries(dataset)
            .map(([key, value]) => [key, Array.isArray(value) ? value.join(' ') : String(value)])
            .filter(([, text]) => text !== ''),
          ...copies.map((copy) => [
            'copy',
            `${copy.node} ${copy.state} ${copy.version?.slice(0, 16) ?? '-'} ${formatCount(copy.files, 'file')} ${formatByteSize(copy.chargedBytes)} ${copy.path}`,
          ]),
        ]),
      )
    })
}

function removeCommand(context: CliContext) {
  return new Command('rm')
    .description('forget a dataset name; its source is not touched')
    .argument('<dataset>')
    .option('--dry-run', 'show what would happen')
    .addHelpText('after', '\nExamples:\n  dsc dataset rm flowers\n  dsc dataset rm flowers --dry-run')
    .action(async (name, options) => {
      const { datasets } = await context.config()
      if (datasets.some((declared) => declared.name === name)) {
        throw new DscError('USAGE', `${name} is declared in dsc.yaml`, { hint: 'remove it there' })
      }
      const record = await context.openRecord()
      if ((await record.findDataset(name)) === undefined) {
        throw await unknownDataset(context, name, { command: 'dsc dataset rm', otherwise: 'dsc dataset ls' })
      }
      const copies = options.dryRun
        ? await record.listCopies({ dataset: name }, context.nowMs())
        : await record.removeDataset(name)
      if (copies.length > 0) {
        throw new DscError(
          'DATASET_IN_USE',
          `${name} still has ${formatCount(copies.length, 'copy', 'copies')}`,
          { hint: `dsc evict ${name}` },
        )
      }
      const isDryRun = options.dryRun === true
      context.report.result<'dataset rm'>({ dataset: name, isDryRun }, () =>
        isDryRun ? `would forget ${name}` : `forgot ${name}`,
      )
    })
}
