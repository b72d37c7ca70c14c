import { Command } from 'commander'
import { listHubCache } from '../../cache/upkeep/list-hub-cache.js'
import { DscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import type { Copy } from '../../model/copy.js'
import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { AdoptPlanAnswer } from '../answers/cache-answers.js'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'
import { reportAdopted } from '../output/report-adopted.js'

interface AdoptOptions {
  readonly name?: string
  readonly source?: string
  readonly endpoint?: string
  readonly pathStyle?: true
  readonly dryRun?: true
}

/** `dsc adopt`: turns folders that were on disk before dsc into copies in the record. */
export function adoptCommand(context: CliContext): Command {
  return new Command('adopt')
    .description('take over folders that are on disk, or a Hugging Face cache')
    .argument('<folders...>', "folders, or quoted globs such as '/nvme/old/*'")
    .option('--name <dataset>', "name of the dataset (default: the folder's)")
    .option('--source <url>', 'source of the same files; dsc compares them with it')
    .option('--endpoint <url>', 'S3 server of --source (default: AWS)', argument(parseEndpoint))
    .option('--path-style', 'put the bucket in the path of --endpoint')
    .option('--dry-run', 'list the folders')
    .addHelpText(
      'after',
      "\ndsc records the folder and moves nothing. Without --source it locks the copy, because it could not download it\nagain. dsc copies a Hugging Face cache, at the commits that it has, and downloads what is missing.\n\nExamples:\n  dsc adopt /nvme/imagenet\n  dsc adopt ~/.cache/huggingface/hub\n  dsc adopt '/nvme/old/*' --dry-run\n  dsc adopt /nvme/imagenet --source s3://ml-data/imagenet/",
    )
    .action(async (patterns: readonly string[], options: AdoptOptions) => {
      const folders = await findFolders(patterns)
      const hubs = folders.map(listHubCache)
      const ordinary = folders.filter((_, at) => hubs[at] === undefined)
      if (ordinary.length < folders.length) {
        requireHubCaches(ordinary, options)
        const { adoptRepositories } = await import('./adopt-repositories.js')
        const repositories = hubs.flatMap((hub) => hub ?? [])
        return adoptRepositories(context, repositories, options)
      }
      const isNamed = options.name !== undefined || options.source !== undefined
      if (isNamed && folders.length > 1) {
        throw new DscError('USAGE', `--name and --source are for one folder, found ${folders.length}`, {
          hint: 'adopt them one by one',
        })
      }
      const { adoptFolder, datasetNameOf } = await import('../../cache/upkeep/adopt-folder.js')
      const wanted = folders.map((folder) => ({
        folder,
        name: parseWord(parseDatasetName, options.name ?? datasetNameOf(folder)),
      }))
      if (options.dryRun) {
        const answer: AdoptPlanAnswer = {
          dsc: 1,
          isDryRun: true,
          folders: wanted.map(({ folder, name }) => ({ folder, dataset: name })),
        }
        context.report.result(answer, () =>
          alignColumns(wanted.map(({ folder, name }) => [`would adopt ${folder}`, `as ${name}`])),
        )
        return
      }
      const cache = await context.openCache()
      const { saveNode } = await import('../../cache/save-node.js')
      await saveNode(cache)
      const adopted: Copy[] = []
      for (const { folder, name } of wanted) {
        const copy = await adoptFolder(cache, {
          folder,
          name,
          source: await sourceOf(context, name, options),
          signal: context.signal,
          onProgress: (files) => context.report.progress(`${name}: ${formatCount(files, 'file')} read`),
        })
        context.report.progress(undefined)
        if (copy) adopted.push(copy)
        else context.report.note(`${name} is in the record already`)
      }
      reportAdopted(context.report, adopted)
    })
}

function requireHubCaches(ordinary: readonly string[], options: AdoptOptions): void {
  if (ordinary[0] !== undefined)
    throw new DscError('USAGE', `${ordinary[0]} is no Hugging Face cache, and others of these are`, {
      hint: 'adopt those caches by themselves',
    })
  if (options.name !== undefined || options.source !== undefined)
    throw new DscError('USAGE', 'a Hugging Face cache says itself what its repositories are', {
      hint: 'leave --name and --source out',
    })
}

async function sourceOf(
  context: CliContext,
  name: string,
  options: AdoptOptions,
): Promise<Dataset | undefined> {
  const { datasets } = await context.config()
  const record = await context.openRecord()
  if (options.source === undefined)
    return datasets.find((dataset) => dataset.name === name) ?? record.findDataset(name)
  parseWord(parseSourceUrl, options.source)
  const dataset: Dataset = {
    name,
    source: options.source,
    include: [],
    exclude: [],
    endpoint: options.endpoint,
    pathStyle: options.pathStyle,
  }
  await record.saveDataset(dataset, context.nowMs())
  return dataset
}

/** Uses fast-glob, which walks folders; picomatch, which matches keys elsewhere, only compares text. */
async function findFolders(patterns: readonly string[]): Promise<readonly string[]> {
  const { default: glob } = await import('fast-glob')
  const folders = await glob(
    patterns
      .filter(Boolean)
      .map((pattern) =>
        glob.isDynamicPattern(pattern) ? pattern : glob.escapePath(pattern.replace(/(.)\/+$/, '$1')),
      ),
    { onlyDirectories: true, absolute: true, unique: true },
  )
  if (folders.length > 0) return folders.toSorted()
  throw new DscError(
    'SOURCE_NOT_FOUND',
    `no folder matches ${patterns.map((pattern) => pattern || '""').join(' ')}`,
    {
      hint: "quote a glob so that the shell leaves it alone: '/nvme/old/*'",
    },
  )
}
