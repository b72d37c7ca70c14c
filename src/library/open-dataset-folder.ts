import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { identifyProcess } from '../platform/processes.js'
import type { Surroundings } from './surroundings.js'

/** A folder of samples, leased to this process if it is a copy of a dataset. */
export interface DatasetFolder {
  readonly folder: string
  /** Ends the lease; a process that dies without ends it too. */
  release(): Promise<void>
}

/**
 * The folder that a feed reads: `target` itself when it is a directory, otherwise a copy of the dataset of that name
 * on this node, which is staged first if need be. This is the one place where a name becomes a path.
 */
export async function openDatasetFolder(
  context: Surroundings,
  target: string,
  split: string | undefined,
): Promise<DatasetFolder> {
  if (isDirectory(target)) return { folder: findSplit(target, split), release: async () => {} }
  if (/^[./]/.test(target))
    throw new DscError('COPY_NOT_FOUND', `${target} is no directory`, { hint: 'dsc status' })
  const own = identifyProcess(process.pid)
  if (own === undefined) throw new DscError('USAGE', 'cannot read /proc: a feed needs Linux')
  const [{ prepareDataset }, { identifyCaller }, { chooseHolder }, { resolveDataset }, { reportProgress }] =
    await Promise.all([
      import('../stage/prepare-dataset.js'),
      import('../stage/identify-caller.js'),
      import('../stage/plan/choose-holder.js'),
      import('./resolve-dataset.js'),
      import('./report-progress.js'),
    ])
  const dataset = await resolveDataset(context, target)
  const cache = await context.openCache()
  const caller = identifyCaller({ environment: context.environment, task: undefined, isOwnProcess: true })
  const { task } = chooseHolder(caller, context.nowMs())
  const { copy, leaseId } = await prepareDataset(
    cache,
    { dataset, lease: { task, holder: own, expiresAtMs: null }, isRefresh: false, mayWait: true },
    { signal: context.signal, onProgress: reportProgress(context.report, dataset.name, context.nowMs) },
  )
  context.report.progress(undefined)
  const release = async () => {
    await cache.record.releaseUses({ leaseId }, context.nowMs())
  }
  try {
    return { folder: findSplit(copy.path, split), release }
  } catch (error) {
    await release()
    throw error
  }
}

function findSplit(folder: string, split: string | undefined): string {
  if (split === undefined) return resolve(folder)
  if (isDirectory(join(folder, split))) return resolve(folder, split)
  throw new DscError('COPY_NOT_FOUND', `${folder} has no folder named ${split}`, { hint: `ls ${folder}` })
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
