import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** `path` if it exists, else its nearest parent that does: where asking about the file system makes sense. */
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
