import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Surroundings } from '../cache/surroundings.js'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import type { Preparing } from './begin-preparing.js'

/** A folder of samples, leased to this process if it is a copy of a dataset. */
export interface DatasetFolder {
  readonly folder: string
  /** Of which it is; undefined where the folder is none of ours. */
  readonly copy: Copy | undefined
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
  if (isDirectory(target))
    return { folder: findSplit(target, split), copy: undefined, release: async () => {} }
  if (/^[./]/.test(target))
    throw new DscError('COPY_NOT_FOUND', `${target} is no directory`, { hint: 'dsc status' })
  const { beginPreparing } = await import('./begin-preparing.js')
  return toFolder(context, await beginPreparing(context, target, { isReadWhileComing: false }), split)
}

/** The folder of a dataset once it is ready; ends the lease where it does not become so. */
export async function toFolder(
  context: Surroundings,
  { prepared, release }: Preparing,
  split: string | undefined,
): Promise<DatasetFolder> {
  try {
    const copy = await prepared
    context.report.progress(undefined)
    return { folder: findSplit(copy.path, split), copy, release }
  } catch (error) {
    await release()
    throw error
  }
}

function findSplit(folder: string, split: string | undefined): string {
  if (split === undefined) return resolve(folder)
  if (isDirectory(join(folder, split))) return resolve(folder, split)
  throw noSplit(folder, split)
}

/** Why the samples of a folder cannot be fed. */
export function noSplit(folder: string, split: string): DscError {
  return new DscError('COPY_NOT_FOUND', `${folder} has no folder named ${split}`, { hint: `ls ${folder}` })
}

/** Whether a target is a path and not a name. */
export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
