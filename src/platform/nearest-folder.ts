import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** `path` if it exists, else its nearest existing parent: a path for questions about the file system. */
export async function findNearestExisting(path: string): Promise<string> {
  try {
    await stat(path)
    return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
    return findNearestExisting(dirname(path))
  }
}
