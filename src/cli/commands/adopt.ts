import { Command } from 'commander'
import type { AdoptionRequest } from '../../cache/api/upkeep-api.js'
import { listHubCache } from '../../cache/upkeep/list-hub-cache.js'
import { DscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import type { Copy } from '../../model/copy.js'
import { parseDatasetName } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'
import { reportAdopted } from '../output/report-adopted.js'

const declare = () =>
  new Command('adopt')
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

type AdoptOptions = OptionsOf<typeof declare>

/** `dsc adopt`: turns folders that were on disk before dsc into copies in the record. */
export function adoptCommand(context: CliContext) {
  return declare().action(async (patterns, options) => {
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
    const { datasetNameOf } = await import('../../cache/upkeep/adopt-folder.js')
    const wanted = folders.map((folder) => ({
      folder,
      name: parseWord(parseDatasetName, options.name ?? datasetNameOf(folder)),
    }))
    if (options.dryRun) {
      const answer: AnswerOf<'adopt --dry-run'> = {
        isDryRun: true,
        folders: wanted.map(({ folder, name }) => ({ folder, dataset: name })),
      }
      context.report.result(answer, () =>
        alignColumns(wanted.map(({ folder, name }) => [`would adopt ${folder}`, `as ${name}`])),
      )
      return
    }
    const source = readSource(options)
    const api = await context.openApi()
    const adopted: Copy[] = []
    for (const { folder, name } of wanted) {
      const copy = await api.adopt(
        { folder, name, source },
        {
          signal: context.signal,
          onProgress: ({ files }) => context.report.progress(`${name}: ${formatCount(files, 'file')} read`),
        },
      )
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

function readSource({ source, endpoint, pathStyle }: AdoptOptions): AdoptionRequest['source'] {
  if (source === undefined) return undefined
  parseWord(parseSourceUrl, source)
  return { source, endpoint, pathStyle }
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
    { hint: "quote a glob so that the shell leaves it alone: '/nvme/old/*'" },
  )
}
