import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'

/**
 * The folder that a feed reads: `target` itself when it is a directory, otherwise the ready copy of the dataset of
 * that name on this node. This is the one place where a name becomes a path.
 */
export async function findDatasetFolder(target: string, split: string | undefined): Promise<string> {
  const folder = split === undefined ? target : join(target, split)
  if (isDirectory(folder)) return folder
  if (isDirectory(target))
    throw new DscError('COPY_NOT_FOUND', `${target} has no folder named ${split}`, { hint: `ls ${target}` })
  throw new DscError('COPY_NOT_FOUND', `${target} is no directory`, {
    hint: `dsc feed serve "$(dsc prepare ${target})"`,
  })
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}
