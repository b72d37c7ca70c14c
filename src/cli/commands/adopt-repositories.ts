import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import { reportProgress } from '../../cache/prepare/report-progress.js'
import type { DownloadedRepository } from '../../cache/upkeep/list-hub-cache.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import { holdByThisProcess } from '../../platform/processes.js'
import type { AdoptPlanAnswer } from '../answers/cache-answers.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'
import { reportAdopted } from '../output/report-adopted.js'

/**
 * `dsc adopt` for repositories that the hub's own clients downloaded: stages each one at its commit on disk. Reports
 * each repository that cannot be adopted, with the reason, and goes on with the others.
 */
export async function adoptRepositories(
  context: CliContext,
  repositories: readonly DownloadedRepository[],
  options: { readonly dryRun?: true },
): Promise<void> {
  if (options.dryRun) return showPlan(context, repositories)
  const taken: Copy[] = []
  const failures: { readonly source: string; readonly error: DscError }[] = []
  for (const repository of repositories) {
    const { source } = repository
    try {
      taken.push(await adoptRepository(context, repository))
    } catch (error) {
      if (!(error instanceof DscError) || context.signal.aborted) throw error
      failures.push({ source, error })
      context.report.note(`${source}: ${error.message}`)
      // The next one would take just as long to fail.
      if (isDscError(error, 'SOURCE_UNREACHABLE', 'SOURCE_STALLED')) break
    }
  }
  reportAdopted(context.report, taken)
  const [first] = failures
  if (first === undefined) return
  const untried = repositories.slice(taken.length + failures.length)
  const left = [...failures, ...untried].map(({ source }) => source)
  const { code, message, hint = 'dsc adopt again takes what is missing' } = first.error
  const what = `${formatCount(left.length, 'revision')} not adopted (${left.join(', ')})`
  throw new DscError(code, `${what}: ${message}`, { hint })
}

function showPlan(context: CliContext, repositories: readonly DownloadedRepository[]): void {
  const folders = repositories.map(({ source, commit, hubCache }) => ({ folder: hubCache, source, commit }))
  const answer: AdoptPlanAnswer = { dsc: 1, isDryRun: true, folders }
  context.report.result(answer, () =>
    alignColumns(
      folders.map(({ folder, source, commit }) => [`would take ${source}`, `at ${commit}`, `from ${folder}`]),
    ),
  )
}

/** If this node already has the branch at another commit, it keeps that; the cached commit then gets its own name. */
async function adoptRepository(context: CliContext, repository: DownloadedRepository): Promise<Copy> {
  const { source, pinnedSource, commit } = repository
  const copy = await stageAtCommit(context, source, repository)
  const found = readCommit(copy)
  if (found === commit) return copy
  context.report.note(`${source} is on this node at ${found}; what the cache has becomes ${pinnedSource}`)
  return stageAtCommit(context, pinnedSource, repository)
}

/** Stages `source` at the repository's commit, from what is kept of the repository. */
async function stageAtCommit(
  context: CliContext,
  source: string,
  { pinnedSource, directory }: DownloadedRepository,
): Promise<Copy> {
  // Do not ask other nodes: they may have the branch at another commit.
  const { openStagingSource: _, ...cache } = await context.openCache()
  const pinned = {
    ...cache,
    openSource: (dataset: Dataset) => cache.openSource({ ...dataset, source: pinnedSource }),
    findKept: () => ({ directory, within: '' }),
  }
  const dataset = await resolveDataset(context, source)
  const lease = { task: 'dsc adopt', holder: holdByThisProcess(), expiresAtMs: null }
  const onProgress = reportProgress(context.report, dataset.name, context.nowMs)
  const request = { dataset, lease, isRefresh: false, mayWait: true }
  // An earlier attempt may have listed another commit.
  const options = { signal: context.signal, onProgress, isRelisted: true }
  const { copy, leaseId } = await prepareDataset(pinned, request, options)
  context.report.progress(undefined)
  await cache.record.releaseUses({ leaseId }, context.nowMs())
  return copy
}

/** The commit of a ready copy of a repository. */
function readCommit(copy: Copy): string | undefined {
  const manifest = Manifest.openPublished(copy.directory)
  try {
    return manifest.entries('present').next().value?.versionId ?? undefined
  } finally {
    manifest.close()
  }
}
