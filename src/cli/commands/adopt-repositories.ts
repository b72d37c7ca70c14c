import type { TakenRepository } from '../../cache/api/upkeep-api.js'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { reportProgress } from '../../cache/prepare/report-progress.js'
import type { DownloadedRepository } from '../../cache/upkeep/list-hub-cache.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
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
  context.report.result<'adopt --dry-run'>({ isDryRun: true, folders }, () =>
    alignColumns(
      folders.map(({ folder, source, commit }) => [`would take ${source}`, `at ${commit}`, `from ${folder}`]),
    ),
  )
}

/** If this node already has the branch at another commit, it keeps that; the cached commit then gets its own name. */
async function adoptRepository(context: CliContext, repository: DownloadedRepository): Promise<Copy> {
  const { source, pinnedSource, commit } = repository
  const { copy, commit: found } = await stageAtCommit(context, source, repository)
  if (found === commit) return copy
  context.report.note(`${source} is on this node at ${found}; what the cache has becomes ${pinnedSource}`)
  return (await stageAtCommit(context, pinnedSource, repository)).copy
}

/** Stages `source` at the repository's commit, from what is kept of the repository. */
async function stageAtCommit(
  context: CliContext,
  source: string,
  { pinnedSource, directory }: DownloadedRepository,
): Promise<TakenRepository> {
  const dataset = await resolveDataset(context, source)
  const onProgress = reportProgress(context.report, dataset.name, context.nowMs)
  const api = await context.openApi()
  const taken = await api.takeRepository(
    { dataset, pinnedSource, directory },
    { signal: context.signal, onProgress },
  )
  context.report.progress(undefined)
  return taken
}
